/** Passages of one document among the results, as long as there are others. */
const PER_DOCUMENT = 2;
/** Of the shorter passage, how much may stand in another one of the same document before it says nothing new. */
const OVERLAP = 0.5;
/** Of all that two passages hold, how much is in both when they say the same. */
const SAME = 0.7;
/** Letters of a shingle, white space aside. */
const SHINGLE = 16;
/** One shingle in so many is looked at first, by its hash: the same ones in every text. */
const SAMPLE = 16;
/** And of so much of a passage. */
const SAMPLED = 512;
const FACTOR = 0x01000193;

/** A passage that may be shown. */
export interface Foldable {
  readonly document: number;
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

interface Taken {
  readonly passage: Foldable;
  readonly sample: ReadonlySet<number>;
  /** All shingles, once they were needed. */
  all: ReadonlySet<number> | null;
  readonly duplicates: number[];
}

/** Which passages to show, in order, by their places in what was offered, and which each of them stands for. */
export interface Folded {
  readonly index: number;
  readonly duplicates: readonly number[];
}

/**
 * Chooses among passages, offered best first, until there are `limit`: one that says what a better one says already is
 * left out (near-duplicates, by the Jaccard similarity of sampled shingles, Broder 1997), and no document crowds out the
 * others.
 */
export class NearDuplicates {
  readonly #limit: number;
  readonly #taken = new Map<number, Taken>();
  readonly #waiting: number[] = [];
  readonly #perDocument = new Map<number, number>();
  readonly #offered: Taken[] = [];

  constructor(limit: number) {
    this.#limit = limit;
  }

  get isFull(): boolean {
    return this.#taken.size >= this.#limit;
  }

  offer(passage: Foldable): void {
    const index = this.#offered.length;
    const sample = shinglesOf(passage.text.slice(0, SAMPLED), SAMPLE);
    const candidate: Taken = { passage, sample, all: null, duplicates: [] };
    this.#offered.push(candidate);
    for (const taken of this.#taken.values()) {
      if (saysTheSame(taken, candidate)) {
        taken.duplicates.push(index);
        return;
      }
    }
    const before = this.#perDocument.get(passage.document) ?? 0;
    if (before >= PER_DOCUMENT) {
      this.#waiting.push(index);
      return;
    }
    this.#perDocument.set(passage.document, before + 1);
    this.#taken.set(index, candidate);
  }

  /** In the order offered. What a crowded document had to hold back is among them where there was room. */
  chosen(): Folded[] {
    const chosen = [...this.#taken.keys(), ...this.#waiting].slice(0, this.#limit);
    return chosen
      .sort((left, right) => left - right)
      .map((index) => ({ index, duplicates: this.#offered[index]?.duplicates ?? [] }));
  }
}

function saysTheSame(taken: Taken, candidate: Taken): boolean {
  const { passage: a } = taken;
  const { passage: b } = candidate;
  if (a.document === b.document) {
    const shared = Math.min(a.end, b.end) - Math.max(a.start, b.start);
    if (shared > OVERLAP * Math.min(a.end - a.start, b.end - b.start)) return true;
  }
  if (taken.sample.size + candidate.sample.size === 0) return a.text.trim() === b.text.trim();
  // A sample only rules out: of a short text it is a handful, which two invoices share that differ in their numbers.
  return areAlike(taken.sample, candidate.sample) && areAlike(allOf(taken), allOf(candidate));
}

function allOf(taken: Taken): ReadonlySet<number> {
  taken.all ??= shinglesOf(taken.passage.text, 1);
  return taken.all;
}

function areAlike(left: ReadonlySet<number>, right: ReadonlySet<number>): boolean {
  const [fewer, more] = left.size < right.size ? [left, right] : [right, left];
  // Jaccard's both / (fewer + more - both) >= SAME, solved for what may be missing.
  let misses = fewer.size - (SAME * (fewer.size + more.size)) / (1 + SAME);
  for (const shingle of fewer) {
    if (misses < 0) return false;
    if (!more.has(shingle)) misses -= 1;
  }
  return misses >= 0;
}

/** `FACTOR` to the power of a shingle's length: what its first letter has grown to when it leaves. */
const LEAVING = Array.from({ length: SHINGLE }).reduce<number>((power) => Math.imul(power, FACTOR), 1);

/** Hashes of every run of letters, one in `sample`, rolled along the text (Karp and Rabin 1987): 12 µs for a sample. */
function shinglesOf(text: string, sample: number): ReadonlySet<number> {
  const lower = text.toLowerCase();
  const window = new Uint16Array(SHINGLE);
  const shingles = new Set<number>();
  let hash = 0;
  let count = 0;
  for (let at = 0; at < lower.length; at++) {
    const unit = lower.charCodeAt(at);
    if (unit <= 0x20) continue;
    const slot = count % SHINGLE;
    hash = (Math.imul(hash, FACTOR) + unit - Math.imul(window[slot] as number, LEAVING)) | 0;
    window[slot] = unit;
    count += 1;
    if (count < SHINGLE) continue;
    const mixed = Math.imul(hash ^ (hash >>> 15), 0x85ebca6b) >>> 0;
    if ((mixed >>> 8) % sample === 0) shingles.add(mixed);
  }
  return shingles;
}
