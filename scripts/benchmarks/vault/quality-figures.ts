import { type Aim, alone, compared, type Figure } from "../figures.ts";
import type { Pair } from "../statistics.ts";
import { LEAST_INGEST } from "./aims.ts";
import type { Mode } from "./client.ts";
import { mean } from "./metrics.ts";

/** Queries as people wrote them, and with typing errors. */
export const VARIANTS = ["clean", "typed"] as const;
export type Variant = (typeof VARIANTS)[number];

export interface Scores {
  readonly ndcg: number;
  readonly recall: number;
}

export interface CollectionResult {
  readonly name: string;
  readonly documentsPerSecond: number;
  /** Times of single searches, in milliseconds. */
  readonly times: Pair<{ readonly p50: number | null; readonly p99: number | null }>;
  /** One element for each injection of typing errors; a single one for queries without. */
  readonly scores: Readonly<Record<Variant, Readonly<Record<Mode | "baseline", readonly Scores[]>>>>;
}

const ABOVE: Aim = { of: "gatehouse", relation: ">", value: 0 };
const LEAST_MEAN: Readonly<Record<Variant, Aim>> = {
  clean: { of: "gatehouse", relation: ">=", value: 0.01 },
  typed: { of: "gatehouse", relation: ">=", value: 0.02 },
};
const ASKED: Readonly<Record<Variant, string>> = { clean: "as asked", typed: "typing errors" };

export function qualityFigures(results: readonly CollectionResult[]): Figure[] {
  return [...results.flatMap(figuresOf), ...VARIANTS.map((variant) => meanDifference(results, variant))];
}

function figuresOf(result: CollectionResult): Figure[] {
  const { name, documentsPerSecond, times } = result;
  const id = `vault.quality.${name}`;
  const time = (which: "p50" | "p99") =>
    compared({ id: `${id}.search.${which}`, label: `  one search at a time, ${which}`, unit: "ms" }, [
      { baseline: times.baseline[which], gatehouse: times.gatehouse[which] },
    ]);
  return [
    alone(
      { id: `${id}.ingest`, label: `${name}: documents added`, unit: "1/s" },
      [documentsPerSecond],
      LEAST_INGEST,
    ),
    ...VARIANTS.flatMap((variant) => scoreFigures(result, variant)),
    time("p50"),
    time("p99"),
  ];
}

function scoreFigures({ name, scores }: CollectionResult, variant: Variant): Figure[] {
  const id = `vault.quality.${name}.${variant}`;
  const score = (mode: Mode, metric: keyof Scores) => pairs(scores[variant], mode).map(select(metric));
  const hybrid = score("hybrid", "ndcg");
  return [
    compared({ id: `${id}.ndcg`, label: `  ${ASKED[variant]}: nDCG@10`, unit: "score" }, hybrid),
    alone(
      { id: `${id}.ndcg_difference`, label: "    above FTS5", unit: "score" },
      hybrid.map(difference),
      ABOVE,
    ),
    compared({ id: `${id}.recall`, label: "    recall@10", unit: "score" }, score("hybrid", "recall")),
    compared(
      { id: `${id}.keyword.ndcg`, label: "    keyword only: nDCG@10", unit: "score" },
      score("keyword", "ndcg"),
    ),
    compared(
      { id: `${id}.vector.ndcg`, label: "    vector only: nDCG@10", unit: "score" },
      score("vector", "ndcg"),
    ),
  ];
}

/** The mean difference in nDCG@10 over the collections, for each injection of typing errors. */
function meanDifference(results: readonly CollectionResult[], variant: Variant): Figure {
  const takes = results[0]?.scores[variant].baseline.length ?? 0;
  const differences = Array.from({ length: takes }, (_, take) =>
    mean(
      results.map(({ scores }) => {
        const pair = pairs(scores[variant], "hybrid").map(select("ndcg"))[take];
        return pair === undefined ? Number.NaN : difference(pair);
      }),
    ),
  );
  return alone(
    {
      id: `vault.quality.mean.${variant}.ndcg_difference`,
      label: `${ASKED[variant]}: nDCG@10 above FTS5, mean of the collections`,
      unit: "score",
    },
    differences,
    LEAST_MEAN[variant],
  );
}

function pairs(scores: CollectionResult["scores"][Variant], mode: Mode): Pair<Scores>[] {
  return scores[mode].flatMap((gatehouse, take) => {
    const baseline = scores.baseline[take];
    return baseline === undefined ? [] : [{ baseline, gatehouse }];
  });
}

function select(metric: keyof Scores): (pair: Pair<Scores>) => Pair<number> {
  return ({ baseline, gatehouse }) => ({ baseline: baseline[metric], gatehouse: gatehouse[metric] });
}

function difference({ baseline, gatehouse }: Pair<number>): number {
  return gatehouse - baseline;
}
