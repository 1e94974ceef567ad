import { nearest } from "./nearest.ts";
import type { ConfigProblem } from "./problems.ts";
import { type ReadFile, readFailure } from "./read-file.ts";
import { plainName } from "./redact.ts";
import { OTHER_VARIABLES, SETTINGS } from "./table.ts";

export type Variables = Readonly<Record<string, string | undefined>>;

/** A variable's value and the variable that it came from, or why it is not available (a phrase to follow "…: "). */
export type VariableLookup = { readonly value: string; readonly from: string } | { readonly failure: string };

const SECRET_LIMIT = 64 * 1024;

/**
 * The value of NAME. If it is unset or empty, the trimmed content of the file named by NAME_FILE, which is how
 * container platforms provide secrets. Undefined if neither is set.
 */
export function lookUp(env: Variables, readFile: ReadFile, name: string): VariableLookup | undefined {
  const value = env[name];
  if (value !== undefined && value !== "") return { value, from: name };
  const path = env[`${name}_FILE`];
  if (path === undefined || path === "") return value === undefined ? undefined : { value, from: name };
  try {
    const content = readFile(path, SECRET_LIMIT);
    if (Buffer.byteLength(content) > SECRET_LIMIT)
      return { failure: `the file that ${name}_FILE names is larger than 64 KiB` };
    const value = content.trim();
    return value === ""
      ? { failure: `the file that ${name}_FILE names is empty` }
      : { value, from: `${name}_FILE` };
  } catch (cause) {
    // The path is left out, because people put the secret itself there by mistake.
    return { failure: `the file that ${name}_FILE names ${readFailure(cause, SECRET_LIMIT)}` };
  }
}

/** Variables that Kubernetes and Docker set automatically for a service named `gatehouse` or `gatehouse-…`. */
const SERVICE_LINK =
  /^GATEHOUSE_(?:[A-Z0-9_]+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]+)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)$/;
const SERVICE_URL = /^(?:tcp|udp|sctp):\/\//;

/**
 * Returns a problem for each `GATEHOUSE_` variable that is neither a setting nor in `used` (the names in the file's
 * `${…}`).
 */
export function unknownVariables(env: Variables, used: ReadonlySet<string>): ConfigProblem[] {
  const known = new Set([...SETTINGS.flatMap(({ env }) => env ?? []), ...OTHER_VARIABLES.keys()]);
  const isKnown = (name: string): boolean => known.has(name) || used.has(name);
  const problems: ConfigProblem[] = [];
  for (const [name, value] of Object.entries(env)) {
    if (!name.startsWith("GATEHOUSE_") || value === undefined || isKnown(name)) continue;
    if (name.endsWith("_FILE") && isKnown(name.slice(0, -"_FILE".length))) continue;
    if (SERVICE_LINK.test(name) || (/_PORT$/.test(name) && SERVICE_URL.test(value))) continue;
    const group = fileOnlyGroup(name);
    problems.push({
      key: plainName(name),
      where: undefined,
      message: group
        ? `is not a known variable; ${group} can only be set in the configuration file`
        : `is not a known variable; the nearest is ${nearest(name, known)}`,
    });
  }
  return problems;
}

function fileOnlyGroup(name: string): string | undefined {
  const group = /^GATEHOUSE_(PROVIDERS|MODELS|TIERS)(?:_|$)/.exec(name)?.[1];
  return group?.toLowerCase();
}
