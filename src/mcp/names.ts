import { createHash } from "node:crypto";

/** Names of tools over MCP, both ways. */
export interface ToolNames {
  /** What clients see; undefined for a name that is not among those that the map was made of. */
  outward(name: string): string | undefined;
  /** The dotted name behind what a client calls: by what it sees, or by the dotted name itself. */
  inward(shown: string): string | undefined;
}

/** Claude, Cursor and the providers refuse more, and one name that they refuse hides a whole server. */
const LENGTH = 64;
const HASH_LENGTH = 8;

/**
 * `github.search` is `github__search`: letters, digits and `_` alone, 64 at most. Of names that are the same once made safe,
 * one that needed no change keeps its own, and each other gets a part of its hash: what a name means does not hang on
 * which tools are there besides, but for those it would be mistaken for.
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

/** Whether nothing but the dot had to be changed: no two such names are the same. */
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
