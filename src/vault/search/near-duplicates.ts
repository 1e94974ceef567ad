/** Maximum number of passages per document among the results, as long as there are other documents. */
const PER_DOCUMENT = 2;
/** If this part of the shorter passage also occurs in another passage of the same document, it adds nothing new. */
const OVERLAP = 0.5;
/** The Jaccard similarity from which two passages count as the same. */
const SAME = 0.7;
/** Characters of a shingle, without white space. */
const SHINGLE = 16;
/** One shingle in this many is sampled, selected by hash, so the same shingles are sampled in every text. */
const SAMPLE = 16;
/** The part of a passage that is sampled. */
const SAMPLED = 512;
const FACTOR = 0x01000193;

/** A candidate result. */
export interface CandidatePassage {
  readonly document: number;
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

interface KeptPassage {
  readonly passage: CandidatePassage;
  readonly sample: ReadonlySet<number>;
  /** All shingles, once computed. */
  all: ReadonlySet<number> | null;
  readonly duplicates: number[];
}

/** The passages to show, in order, as indices into the candidates, with the candidates that each represents. */
export interface DuplicateGroup {
  readonly index: number;
  readonly duplicates: readonly number[];
}

/**
 * Selects up to `limit` passages from candidates offered best first: near-duplicates of better ones are left out (by
 * the Jaccard similarity of sampled shingles, Broder 1997), and no document crowds out the others.
 */
export class NearDuplicates {
  readonly #limit: number;
  readonly #taken = new Map<number, KeptPassage>();
  readonly #waiting: number[] = [];
  readonly #perDocument = new Map<number, number>();
  readonly #offered: KeptPassage[] = [];

  constructor(limit: number) {
    this.#limit = limit;
  }

  get isFull(): boolean {
    return this.missing === 0;
  }

  /** How many more passages can be selected. */
  get missing(): number {
    return this.#limit - this.#taken.size;
  }

  offer(passage: CandidatePassage): void {
    const index = this.#offered.length;
    const sample = shinglesOf(passage.text.slice(0, SAMPLED), SAMPLE);
    const candidate: KeptPassage = { passage, sample, all: null, duplicates: [] };
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

  /** In the order offered. Passages held back because their document had too many are included if there is room. */
  chosen(): DuplicateGroup[] {
    const chosen = [...this.#taken.keys(), ...this.#waiting].slice(0, this.#limit);
    return chosen
      .sort((left, right) => left - right)
      .map((index) => ({ index, duplicates: this.#offered[index]?.duplicates ?? [] }));
  }
}

function saysTheSame(taken: KeptPassage, candidate: KeptPassage): boolean {
  const { passage: a } = taken;
  const { passage: b } = candidate;
  if (a.document === b.document) {
    const shared = Math.min(a.end, b.end) - Math.max(a.start, b.start);
    if (shared > OVERLAP * Math.min(a.end - a.start, b.end - b.start)) return true;
  }
  if (taken.sample.size + candidate.sample.size === 0) return a.text.trim() === b.text.trim();
  // A sample can only rule similarity out: a short text has only a handful, which two invoices with different numbers
  // share.
  return areAlike(taken.sample, candidate.sample) && areAlike(allOf(taken), allOf(candidate));
}

function allOf(taken: KeptPassage): ReadonlySet<number> {
  taken.all ??= shinglesOf(taken.passage.text, 1);
  return taken.all;
}

function areAlike(left: ReadonlySet<number>, right: ReadonlySet<number>): boolean {
  const [fewer, more] = left.size < right.size ? [left, right] : [right, left];
  // Jaccard's both / (fewer + more - both) >= SAME, solved for the shingles that may be missing.
  let misses = fewer.size - (SAME * (fewer.size + more.size)) / (1 + SAME);
  for (const shingle of fewer) {
    if (misses < 0) return false;
    if (!more.has(shingle)) misses -= 1;
  }
  return misses >= 0;
}

/** `FACTOR` to the power of a shingle's length: the weight of the character that leaves the window. */
const LEAVING = Array.from({ length: SHINGLE }).reduce<number>((power) => Math.imul(power, FACTOR), 1);

/** Hashes of one in `sample` of all shingles, by a rolling hash (Karp and Rabin 1987): 12 µs for a sample. */
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
