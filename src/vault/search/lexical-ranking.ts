import { documentOf } from "../rows/keys.ts";
import type { Segment } from "../segments/segment.ts";
import { type ScoredAt, TopK } from "./top-k.ts";

/** Similarity of passages to a question by spelling: the `builtin/lexical` vectors in the segments. */
export class LexicalRanking {
  readonly #vector: Float32Array;
  readonly #segments: readonly Segment[];
  /** Index of each segment's first passage among all passages. */
  readonly #starts: readonly number[];

  constructor(vector: Float32Array, segments: readonly Segment[]) {
    this.#vector = vector;
    this.#segments = segments;
    const starts: number[] = [];
    let start = 0;
    for (const { keys } of segments) {
      starts.push(start);
      start += keys.length;
    }
    this.#starts = starts;
  }

  /** The similarity of a passage by its index among all. */
  similarity(at: number): number {
    let low = 0;
    let high = this.#starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if ((this.#starts[middle] as number) <= at) low = middle;
      else high = middle - 1;
    }
    const segment = this.#segments[low];
    return segment ? segment.similarity(at - (this.#starts[low] as number), this.#vector) : 0;
  }

  /** The nearest passages, within the documents in `only` if given. */
  best(limit: number, only: ReadonlySet<number> | null): ScoredAt[] {
    const best = new TopK(limit);
    for (const [index, segment] of this.#segments.entries()) {
      const start = this.#starts[index] as number;
      for (let place = 0; place < segment.keys.length; place++) {
        const key = segment.keys[place] as number;
        if (segment.scales[place] === 0 || (only !== null && !only.has(documentOf(key)))) continue;
        const similarity = segment.similarity(place, this.#vector);
        if (similarity >= best.threshold) best.offer(key, similarity, start + place);
      }
    }
    return best.sorted();
  }
}
