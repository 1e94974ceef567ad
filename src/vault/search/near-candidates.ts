import type { Segment } from "../segments/segment.ts";
import { TopK } from "./top-k.ts";

/** The most passages to be compared exactly, for each requested one, and at least. */
const MOST_FOR_EACH = 4;
const LEAST = 512;
/**
 * By how many of a vector's rounding steps the similarity of its rounded copy may differ from its own. Each number is
 * rounded by 0.29 steps (the standard deviation of an even distribution), and independently of the others, so with a
 * question of unit length the sum is as well: this is more than eight times as much.
 */
const ERROR_STEPS = 2.5;

/**
 * The passages among which the `limit` nearest are, by the rounded copies of their vectors: all whose similarity is so
 * close to the last one's that rounding may have changed the order. If very many are, only the nearest of them, whose
 * similarities then differ by less than a hundredth.
 *
 * @param vector of unit length, with as many numbers as the copies
 */
export function nearCandidates(
  segments: readonly Segment[],
  vector: Float32Array,
  limit: number,
  isShown: (passage: number) => boolean,
): readonly number[] {
  const best = new TopK(Math.max(LEAST, limit * MOST_FOR_EACH));
  let step = 0;
  for (const segment of segments) {
    const { keys, scales } = segment;
    for (let place = 0; place < keys.length; place++) {
      const similarity = segment.similarity(place, vector);
      if (similarity < best.threshold) continue;
      const key = keys[place] as number;
      if (!isShown(key)) continue;
      step = Math.max(step, scales[place] as number);
      best.offer(key, similarity);
    }
  }
  const near = best.sorted();
  const last = near[limit - 1]?.score ?? Number.NEGATIVE_INFINITY;
  return near.filter(({ score }) => score >= last - 2 * ERROR_STEPS * step).map(({ key }) => key);
}
