import { type Aim, compared, type Figure } from "../figures.ts";
import type { Pair } from "../statistics.ts";
import type { Round } from "../workshop.ts";

/** The number of connections at which the rates are measured. */
export const CONNECTIONS = 64;

/** The lines of two servers under the same load. The aim applies to the rate. */
export function loadFigures(
  { id, label }: { readonly id: string; readonly label: string },
  rounds: readonly Pair<Round>[],
  aim?: Aim,
): Figure[] {
  const pairs = (of: (round: Round) => number | null): Pair<number | null>[] =>
    rounds.map(({ baseline, gatehouse }) => ({ baseline: of(baseline), gatehouse: of(gatehouse) }));
  return [
    compared(
      { id: `${id}.rate`, label, unit: "1/s" },
      pairs((round) => round.perSecond),
      aim,
    ),
    compared(
      { id: `${id}.p50`, label: "  latency p50", unit: "ms" },
      pairs((round) => round.p50),
    ),
    compared(
      { id: `${id}.p99`, label: "  latency p99", unit: "ms" },
      pairs((round) => round.p99),
    ),
    compared(
      { id: `${id}.cpu`, label: "  server CPU per operation", unit: "µs" },
      pairs((round) => round.cpuMicros),
    ),
  ];
}
