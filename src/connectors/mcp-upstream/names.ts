import { createHash } from "node:crypto";

/** Characters of an offered name. */
const NAME_LIMIT = 100;
const UNSAFE = /[^a-zA-Z0-9_.-]/g;
const DIGEST_CHARACTERS = 8;

/**
 * A name that may be offered for each of the upstream's own: `[a-zA-Z0-9_.-]{1,100}`, all of them different, the same for
 * the same set in any order, so that what an agent may use stays the same tool. Names that are safe stay as they are;
 * others that would meet get a part of their own name's digest.
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

/** Longer and longer parts of the digest: an upstream may name a tool like another one's first. */
function distinct(name: string, taken: ReadonlySet<string>): string {
  const digest = createHash("sha256").update(name).digest("hex");
  for (let characters = DIGEST_CHARACTERS; characters <= digest.length; characters += DIGEST_CHARACTERS) {
    const end = `_${digest.slice(0, characters)}`;
    const candidate = `${safe(name).slice(0, NAME_LIMIT - end.length)}${end}`;
    if (!taken.has(candidate)) return candidate;
  }
  throw new Error("a tool's name cannot be told from the others");
}
