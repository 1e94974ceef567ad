import { createHash } from "node:crypto";

/** Maps tool names to the names used over MCP, and back. */
export interface ToolNames {
  /** The name that clients see; undefined for a name that is not in the map. */
  outward(name: string): string | undefined;
  /** The dotted name for the name that a client uses, which may be the MCP name or the dotted name itself. */
  inward(shown: string): string | undefined;
}

/**
 * Maximum length of a name: Claude, Cursor and the providers reject longer ones, and one rejected name hides all
 * tools of a server.
 */
const LENGTH = 64;
const HASH_LENGTH = 8;

/**
 * Maps `github.search` to `github__search`: only letters, digits and `_`, at most 64 characters. If several names map
 * to the same text, one that needed no change keeps it, and each other one gets part of its hash. So a name's meaning
 * depends on other tools only if they would collide.
 */
export function toolNames(names: readonly string[]): ToolNames {
  const groups = new Map<string, string[]>();
  for (const name of names) {
    const safe = safeName(name);
    const group = groups.get(safe);
    if (group) group.push(name);
    else groups.set(safe, [name]);
  }
  const outward = new Map<string, string>();
  const inward = new Map<string, string>();
  const claim = (name: string, shown: string): void => {
    outward.set(name, shown);
    inward.set(shown, name);
  };
  const others: string[] = [];
  for (const [safe, group] of groups) {
    for (const name of group) {
      if (group.length === 1 || isClean(name)) claim(name, safe);
      else others.push(name);
    }
  }
  for (const name of others) {
    let length = HASH_LENGTH;
    while (inward.has(hashed(name, length))) length += 1;
    claim(name, hashed(name, length));
  }
  return {
    outward: (name) => outward.get(name),
    inward: (shown) => inward.get(shown) ?? (outward.has(shown) ? shown : undefined),
  };
}

function replaced(name: string): string {
  return name.replace(".", "__").replaceAll(/[^A-Za-z0-9_]/g, "_");
}

function safeName(name: string): string {
  return isTooLong(name) ? hashed(name) : replaced(name);
}

/** Whether only the dot had to be replaced. Two such names never collide. */
function isClean(name: string): boolean {
  return /^[A-Za-z0-9_]+\.[A-Za-z0-9_]+$/.test(name) && !isTooLong(name);
}

function isTooLong(name: string): boolean {
  return replaced(name).length > LENGTH;
}

function hashed(name: string, length = HASH_LENGTH): string {
  const hash = createHash("sha256").update(name).digest("hex").slice(0, length);
  return `${replaced(name).slice(0, LENGTH - length - 1)}_${hash}`;
}
