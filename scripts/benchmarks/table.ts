import type { Figure } from "./figures.ts";
import type { Machine } from "./machine.ts";
import type { Report } from "./report.ts";
import type { Spread } from "./statistics.ts";

const HEADINGS = ["", "bare", "Gatehouse", "Gatehouse / bare", "aim", ""];
const RELATIONS = { ">=": "≥", ">": ">", "<": "<" } as const;
const SCORE_DIGITS = 4;

/** The line about the machine that produced the figures. */
export function machineLine({ cpu, cores, separate_cores, system, bun, commit, load }: Machine): string {
  const placed =
    separate_cores === null
      ? "not separated"
      : `server on ${separate_cores.server}, load on ${separate_cores.load}`;
  return `${cpu}, ${cores} cores (${placed}), ${system}, Bun ${bun}, commit ${commit}, load before ${load}`;
}

/** The figures as an aligned table of medians, with minimum and maximum in brackets. */
export function table(figures: readonly Figure[]): string {
  const rows = [HEADINGS, ...figures.map(row)];
  const widths = HEADINGS.map((_, column) => Math.max(...rows.map((cells) => cells[column]?.length ?? 0)));
  return rows
    .map((cells) =>
      cells
        .map((cell, column) =>
          column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0),
        )
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

export function summary({ figures, notes, failures, skipped, options, took_seconds }: Report): string {
  const aims = figures.filter(({ aim }) => aim !== null);
  const reached = aims.filter(({ aim }) => aim?.reached === true);
  return [
    `Median (least–most) of ${options.rounds} rounds of ${options.seconds} s each, Gatehouse from ${options.program}; took ${took_seconds} s.`,
    `${reached.length} of ${aims.length} aims reached.`,
    ...notes,
    ...skipped.map(({ area, scenario, message }) => `skipped: ${area}, ${scenario}: ${message}`),
    ...failures.map(({ area, scenario, message }) => `BROKEN: ${area}, ${scenario}: ${message}`),
  ].join("\n");
}

function row({ label, unit, baseline, gatehouse, ratio, aim }: Figure): string[] {
  const suffix =
    unit === "1/s" ? "/s" : unit === "×" || unit === "count" || unit === "score" ? "" : ` ${unit}`;
  const digits = unit === "score" ? SCORE_DIGITS : undefined;
  const target =
    aim === null
      ? ""
      : `${RELATIONS[aim.relation]} ${number(aim.value)}${aim.of === "ratio" ? " ×" : suffix}`;
  const verdict =
    aim === null ? "" : aim.reached === null ? "not measured" : aim.reached ? "reached" : "NOT reached";
  return [
    label,
    cell(baseline, suffix, digits),
    cell(gatehouse, suffix, digits),
    cell(ratio, " ×"),
    target,
    verdict,
  ];
}

function cell(value: Spread | null, suffix: string, digits?: number): string {
  if (value === null) return "";
  const { median, min, max } = value;
  const range = min === max ? "" : ` (${number(min, digits)}–${number(max, digits)})`;
  return `${number(median, digits)}${suffix}${range}`;
}

/** Three significant digits, unless `digits` is given, with separators for thousands. */
function number(value: number, digits = digitsOf(Math.abs(value))): string {
  return value.toLocaleString("en-US", { minimumFractionDigits: 0, maximumFractionDigits: digits });
}

function digitsOf(size: number): number {
  return size >= 100 ? 0 : size >= 10 ? 1 : 2;
}
