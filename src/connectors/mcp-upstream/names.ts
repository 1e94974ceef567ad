import { createHash } from "node:crypto";

/** Maximum number of characters of an offered name. */
const NAME_LIMIT = 100;
const UNSAFE = /[^a-zA-Z0-9_.-]/g;
const DIGEST_CHARACTERS = 8;

/**
 * Returns a unique name of the form `[a-zA-Z0-9_.-]{1,100}` for each of the upstream's own names. The same set gives
 * the same names in any order, so that an agent's permissions keep naming the same tools. Safe names stay unchanged;
 * names that would collide get part of a digest of their own name.
 */
export function offeredNames(own: readonly string[]): ReadonlyMap<string, string> {
  const all = [...new Set(own)].sort();
  const offered = new Map<string, string>();
  const wanted = new Map<string, number>();
  for (const name of all) wanted.set(safe(name), (wanted.get(safe(name)) ?? 0) + 1);
  const taken = new Set<string>();
  const take = (name: string, as: string): void => {
    offered.set(name, as);
    taken.add(as);
  };
  for (const name of all) if (safe(name) === name) take(name, name);
  for (const name of all) {
    if (offered.has(name)) continue;
    const plain = safe(name);
    if (wanted.get(plain) === 1) take(name, plain);
  }
  for (const name of all) {
    if (!offered.has(name)) take(name, distinct(name, taken));
  }
  return offered;
}

function safe(name: string): string {
  return name.replace(UNSAFE, "_").slice(0, NAME_LIMIT) || "_";
}

/**
 * Tries longer and longer parts of the digest: an upstream may give a tool the name that another one would get first.
 */
function distinct(name: string, taken: ReadonlySet<string>): string {
  const digest = createHash("sha256").update(name).digest("hex");
  for (let characters = DIGEST_CHARACTERS; characters <= digest.length; characters += DIGEST_CHARACTERS) {
    const end = `_${digest.slice(0, characters)}`;
    const candidate = `${safe(name).slice(0, NAME_LIMIT - end.length)}${end}`;
    if (!taken.has(candidate)) return candidate;
  }
  throw new Error("a tool's name cannot be made unique");
}
