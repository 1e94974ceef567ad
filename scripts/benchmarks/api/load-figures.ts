import { type Aim, compared, type Figure } from "../figures.ts";
import type { Pair } from "../statistics.ts";
import type { Round } from "../workshop.ts";

export const CONNECTIONS = 64;
/** Above this, the slowest hundredth waits for something that the others do not. */
const LONGEST_TAIL: Aim = { of: "gatehouse", relation: "<", value: 4 };

/** The lines of two servers under the same load. Without `leastRate`, there is no aim for the rate. */
export function loadFigures(
  id: string,
  label: string,
  rounds: readonly Pair<Round>[],
  leastRate?: number,
): Figure[] {
  const pairs = (of: (round: Round) => number | null): Pair<number | null>[] =>
    rounds.map(({ baseline, gatehouse }) => ({ baseline: of(baseline), gatehouse: of(gatehouse) }));
  const tail = ({ p50, p99 }: Round) => (p50 === null || p99 === null ? null : p99 / p50);
  return [
    compared(
      { id: `${id}.rate`, label, unit: "1/s" },
      pairs((round) => round.perSecond),
      leastRate === undefined ? undefined : { of: "ratio", relation: ">=", value: leastRate },
    ),
    compared(
      { id: `${id}.p50`, label: "  latency p50", unit: "ms" },
      pairs((round) => round.p50),
    ),
    compared(
      { id: `${id}.p99`, label: "  latency p99", unit: "ms" },
      pairs((round) => round.p99),
    ),
    compared({ id: `${id}.tail`, label: "  p99 / p50", unit: "×" }, pairs(tail), LONGEST_TAIL),
    compared(
      { id: `${id}.cpu`, label: "  server CPU per operation", unit: "µs" },
      pairs((round) => round.cpuMicros),
    ),
  ];
}
