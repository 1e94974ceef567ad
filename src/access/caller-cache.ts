import type { Caller } from "./caller.ts";
import { bytesOfList } from "./list-memory.ts";

/** Maximum number of entries. An entry costs a call one hash instead of a query. */
const MOST_ENTRIES = 10_000;
/** Bytes of memory for all entries. A token may have 100 scopes of 206 characters: see `list-memory.ts`. */
const MOST_BYTES = 16 * 1024 * 1024;
/** Bytes of an entry without its caller's texts: the caller, its grant and the secret's hash. */
const ENTRY = 1_024;

/**
 * Cached callers, by the hash of their secret. An entry may be outdated, and is then used only for a stop while the store
 * cannot be read. Emptied when full.
 */
export class CallerCache<Entry extends { readonly caller: Caller }> {
  readonly #most: number;
  readonly #entries = new Map<string, Entry>();
  #bytes = 0;

  constructor(mostBytes = MOST_BYTES) {
    this.#most = mostBytes;
  }

  get(hash: string): Entry | undefined {
    return this.#entries.get(hash);
  }

  add(hash: string, entry: Entry): void {
    const before = this.#entries.get(hash);
    if (before) this.#bytes -= bytesOf(before.caller);
    const bytes = bytesOf(entry.caller);
    if (this.#entries.size >= MOST_ENTRIES || this.#bytes + bytes > this.#most) this.clear();
    this.#bytes += bytes;
    this.#entries.set(hash, entry);
  }

  /** Removes these entries. Rare: it looks at all of them. */
  remove(isRemoved: (entry: Entry) => boolean): void {
    for (const [hash, entry] of this.#entries) {
      if (!isRemoved(entry)) continue;
      this.#bytes -= bytesOf(entry.caller);
      this.#entries.delete(hash);
    }
  }

  clear(): void {
    this.#entries.clear();
    this.#bytes = 0;
  }
}

function bytesOf({ name, person, role, scopes }: Caller): number {
  const names = name.length + (person?.length ?? 0) + (role?.length ?? 0);
  return ENTRY + 2 * names + bytesOfList(scopes);
}
