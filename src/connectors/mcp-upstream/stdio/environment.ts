import type { StdioTransport } from "../../definition/definition.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** Variables that a program found by name inherits: where programs are, and where they keep their caches. */
const FOR_NAMES = ["PATH", "HOME"];
/** Nothing starts on Windows without these. */
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
 * The child's whole environment: the declared variables. Everything else that the gateway was started with (its
 * master key, its providers' keys) is withheld. If the child runs as another user, its HOME is that user's `home`,
 * even if `command` is a path, unless HOME is declared.
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
