import { stringify } from "csv-stringify/sync";
import type { EntryView } from "./entry.ts";

const BEFORE_OVERSIGHT = [
  "seq",
  "prev",
  "leaf",
  "ts",
  "phase",
  "ref",
  "action",
  "outcome",
  "code",
  "channel",
  "request_id",
  "actor",
  "agent",
  "tier",
  "model",
  "task",
  "tool",
  "input_hash",
  "output_hash",
  "credits",
] as const satisfies readonly (keyof EntryView)[];
const OVERSIGHT = [
  "person",
  "role",
  "decision",
  "presented_at",
  "decided_at",
  "target_seq",
  "arguments_hash",
  "reason_hash",
];

type Cell = string | number | null;

/**
 * The columns: an entry's fields in the contract's order, with `oversight` spread over several columns and `detail`
 * as JSON.
 */
export const CSV_COLUMNS: readonly string[] = [
  ...BEFORE_OVERSIGHT,
  ...OVERSIGHT.map((field) => `oversight_${field}`),
  "detail",
];

export function csvHeader(): string {
  return csvLines([CSV_COLUMNS]);
}

/** One row per entry. Fields that the entry lacks are empty cells. */
export function csvRows(entries: readonly EntryView[]): string {
  return csvLines(entries.map(cells));
}

function cells(entry: EntryView): Cell[] {
  const row = BEFORE_OVERSIGHT.map((field) => cell(entry[field]));
  const { oversight } = entry;
  for (const field of OVERSIGHT) {
    row.push(
      typeof oversight === "object" && oversight !== null ? cell(Reflect.get(oversight, field)) : null,
    );
  }
  row.push(cell(entry.detail));
  return row;
}

function cell(value: unknown): Cell {
  if (typeof value === "string" || typeof value === "number") return value;
  return value === undefined || value === null ? null : JSON.stringify(value);
}

/**
 * RFC 4180. Text that a spreadsheet would read as a formula (starting with = + - @, their full-width forms, a tab
 * or a carriage return) is prefixed with an apostrophe.
 */
function csvLines(rows: readonly (readonly Cell[])[]): string {
  return rows.map((row) => `${row.map(csvCell).join(",")}\r\n`).join("");
}

/** Text without special meaning in CSV or to a spreadsheet. */
const PLAIN = /^[\w.:/][\w.:/ -]*$/;

/**
 * Nearly all cells are plain. Calling the library for every cell would take 14 µs per row instead of 3. When called
 * with one cell and without a row end, the library also quotes a lone carriage return.
 */
function csvCell(value: Cell): string {
  if (value === null) return "";
  if (typeof value === "number") return String(value);
  return PLAIN.test(value) ? value : stringify([[value]], { eof: false, escape_formulas: true });
}
