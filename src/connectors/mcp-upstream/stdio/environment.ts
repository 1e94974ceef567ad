import type { StdioTransport } from "../../definition.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** What a program that is found by its name gets of our environment: where programs are, and where they keep their caches. */
const FOR_NAMES = ["PATH", "HOME"];
/** Without these nothing starts on Windows. */
const FOR_WINDOWS = [
  "PATH",
  "PATHEXT",
  "SYSTEMROOT",
  "SYSTEMDRIVE",
  "COMSPEC",
  "TEMP",
  "USERPROFILE",
  "APPDATA",
];

/**
 * The child's whole environment: what was declared. Whatever else the gateway was started with (its master key, its
 * providers' keys) stays here. A child that runs as another user gets that user's `home`, wherever its program was found.
 */
export function childEnvironment(
  { command, env }: StdioTransport,
  own: Environment,
  { home, platform = process.platform }: { readonly home?: string; readonly platform?: NodeJS.Platform } = {},
): Record<string, string> {
  const byName = !command.includes("/");
  const added = platform === "win32" ? FOR_WINDOWS : byName ? FOR_NAMES : [];
  const environment: Record<string, string> = {};
  for (const name of added) {
    const value = own[name];
    if (value !== undefined) environment[name] = value;
  }
  return { ...environment, ...(home === undefined ? {} : { HOME: home }), ...env };
}
