/** Longer names are cut before comparing, because typos are short and the comparison takes quadratic time. */
const COMPARED = 64;

/** The number of letters to insert, delete or change to turn one word into the other (Levenshtein distance). */
export function distance(left: string, right: string): number {
  const from = left.slice(0, COMPARED);
  const to = right.slice(0, COMPARED);
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 0; i < from.length; i++) {
    const next = [i + 1];
    for (let j = 0; j < to.length; j++) {
      const change = (row[j] ?? 0) + (from[i] === to[j] ? 0 : 1);
      next.push(Math.min(change, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}

/** The candidate closest to the word, the first of equals; undefined without candidates. */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const candidate of candidates) {
    const steps = distance(word, candidate);
    if (steps >= least) continue;
    best = candidate;
    least = steps;
  }
  return best;
}
