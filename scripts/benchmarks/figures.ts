import { type Pair, type Spread, spread } from "./statistics.ts";

/** What a figure should be, according to the project's design. A missed aim is not a failure of the benchmark. */
export interface Aim {
  /** The spread whose median the aim applies to. */
  readonly of: "gatehouse" | "ratio";
  readonly relation: ">=" | ">" | "<";
  readonly value: number;
}

/** One line of the table. */
export interface Figure {
  /** `<area>.<scenario>.<what>`, stable across versions. */
  readonly id: string;
  readonly label: string;
  /**
   * The unit of `baseline` and `gatehouse`. A score is between 0 and 1 (higher is better), or the
   * difference between two such scores.
   */
  readonly unit: "1/s" | "ms" | "µs" | "kB" | "MB" | "×" | "count" | "score";
  /** Null if there is nothing to compare with. */
  readonly baseline: Spread | null;
  /** Null if this machine does not provide it. */
  readonly gatehouse: Spread | null;
  /** Gatehouse divided by the baseline, for each round. */
  readonly ratio: Spread | null;
  readonly aim: (Aim & { readonly reached: boolean | null }) | null;
}

type Heading = Pick<Figure, "id" | "label" | "unit">;

/** A figure from pairs that were measured side by side. */
export function compared(heading: Heading, pairs: readonly Pair<number | null>[], aim?: Aim): Figure {
  const ratios = pairs.map(({ baseline, gatehouse }) =>
    baseline === null || gatehouse === null || baseline === 0 ? null : gatehouse / baseline,
  );
  return withAim(
    {
      ...heading,
      baseline: spread(pairs.map(({ baseline }) => baseline)),
      gatehouse: spread(pairs.map(({ gatehouse }) => gatehouse)),
      ratio: spread(ratios),
    },
    aim,
  );
}

/** A figure of Gatehouse without anything to compare it with. */
export function alone(heading: Heading, values: readonly (number | null)[], aim?: Aim): Figure {
  return withAim({ ...heading, baseline: null, gatehouse: spread(values), ratio: null }, aim);
}

/** A figure for the baseline, or for the measurement itself. */
export function ofBaseline(heading: Heading, values: readonly (number | null)[]): Figure {
  return withAim({ ...heading, baseline: spread(values), gatehouse: null, ratio: null }, undefined);
}

function withAim(figure: Omit<Figure, "aim">, aim: Aim | undefined): Figure {
  if (aim === undefined) return { ...figure, aim: null };
  const median = figure[aim.of]?.median;
  const reached = median === undefined ? null : holds(median, aim);
  return { ...figure, aim: { ...aim, reached } };
}

function holds(value: number, { relation, value: limit }: Aim): boolean {
  switch (relation) {
    case "<":
      return value < limit;
    case ">":
      return value > limit;
    case ">=":
      return value >= limit;
  }
}
