import { hash53, wordsOf } from "./words.ts";

/** Passages of one document among the results, as long as there are others. */
const PER_DOCUMENT = 2;
/** Of the shorter passage, how much may stand in another one of the same document before it says nothing new. */
const OVERLAP = 0.5;
/** Of all runs of three words in two passages, how many are in both when they say the same. */
const SAME = 0.8;
const RUN = 3;
/** Passages of which neither holds so many words are compared as they stand. */
const FEW_WORDS = 8;

/** A passage that may be shown. */
export interface Foldable {
  readonly document: number;
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

interface Taken {
  readonly passage: Foldable;
  readonly runs: ReadonlySet<number>;
  readonly duplicates: number[];
}

/** Which passages to show, in order, by their places in what was offered, and which each of them stands for. */
export interface Folded {
  readonly index: number;
  readonly duplicates: readonly number[];
}

/**
 * Chooses among passages, offered best first, until there are `limit`: one that says what a better one says already is
 * left out (near-duplicates, by Jaccard similarity of word runs, Broder 1997), and no document crowds out the others.
 */
export class Folder {
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
    const candidate = { passage, runs: runsOf(passage.text), duplicates: [] };
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

  /** In the order offered; what a crowded document had to hold back comes last, if there is room. */
  chosen(): Folded[] {
    const order = [...this.#taken.keys(), ...this.#waiting].slice(0, this.#limit);
    return order.map((index) => ({ index, duplicates: this.#offered[index]?.duplicates ?? [] }));
  }
}

function saysTheSame(taken: Taken, candidate: Taken): boolean {
  const { passage: a } = taken;
  const { passage: b } = candidate;
  if (a.document === b.document) {
    const shared = Math.min(a.end, b.end) - Math.max(a.start, b.start);
    if (shared > OVERLAP * Math.min(a.end - a.start, b.end - b.start)) return true;
  }
  const [fewer, more] = [taken.runs, candidate.runs].sort((left, right) => left.size - right.size);
  if (!fewer || !more || fewer.size < SAME * more.size) return false;
  if (more.size === 0) return a.text.trim() === b.text.trim();
  let both = 0;
  for (const run of fewer) if (more.has(run)) both += 1;
  return both >= SAME * (fewer.size + more.size - both);
}

function runsOf(text: string): ReadonlySet<number> {
  const words = wordsOf(text);
  if (words.length < FEW_WORDS) return new Set(words.length === 0 ? [] : [hash53(words.join(" "))]);
  const runs = new Set<number>();
  for (let at = 0; at + RUN <= words.length; at++) runs.add(hash53(words.slice(at, at + RUN).join(" ")));
  return runs;
}
