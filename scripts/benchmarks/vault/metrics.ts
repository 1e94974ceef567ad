/** How good a ranking is, computed as in trec_eval. */

/** The documents that somebody judged for a query, and how well they answer it: 0 or less means not at all. */
export type Grades = ReadonlyMap<string, number>;

/**
 * nDCG at `cut` (Järvelin and Kekäläinen 2002), as in trec_eval's `ndcg_cut`: the gain is the grade itself (not
 * 2^grade - 1), the document at rank r counts 1 / log2(r + 1) of its gain, and the sum is divided by that of the best
 * ranking of all judged documents. Documents that nobody judged gain nothing.
 * @param ranking document ids, best first, without duplicates
 * @returns 0 to 1; 0 if nothing is relevant
 */
export function ndcg(ranking: readonly string[], grades: Grades, cut: number): number {
  const gain = (document: string) => Math.max(0, grades.get(document) ?? 0);
  const best = [...grades.values()].map((grade) => Math.max(0, grade)).sort((a, b) => b - a);
  const most = discounted(best.slice(0, cut));
  return most === 0 ? 0 : discounted(ranking.slice(0, cut).map(gain)) / most;
}

/**
 * The part of the relevant documents that is among the first `cut`.
 * @returns 0 to 1; 0 if nothing is relevant
 */
export function recall(ranking: readonly string[], grades: Grades, cut: number): number {
  const relevant = [...grades].filter(([, grade]) => grade > 0).map(([document]) => document);
  const first = new Set(ranking.slice(0, cut));
  return relevant.length === 0
    ? 0
    : relevant.filter((document) => first.has(document)).length / relevant.length;
}

/**
 * The arithmetic mean.
 * @returns NaN if there are no values
 */
export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function discounted(gains: readonly number[]): number {
  return gains.reduce((sum, gain, index) => sum + gain / Math.log2(index + 2), 0);
}
