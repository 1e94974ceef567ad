import type { Block } from "../read/document.ts";
import { endBefore, overlapStart, skipSpace, trimmedEnd } from "./chunk-text.ts";

/** Maximum number of UTF-16 code units in a passage. */
export const MAX = 2_000;
/** The length at which a longer section is cut. */
export const TARGET = 1_200;
/** Shorter passages mean too little out of context. */
export const MIN = 200;
/**
 * A passage ends with a paragraph only if it has at least this length by then; otherwise it ends within the next one.
 */
const LOW = 600;
/** How much of the previous passage may be repeated. */
const OVERLAP = 150;
/** Nothing is repeated across a wider gap of white space. */
const GAP = 50;

export interface TextSpan {
  readonly start: number;
  readonly end: number;
}

/** A piece of a section without surrounding white space. */
export interface Unit extends TextSpan {
  readonly kind: Block["kind"];
  readonly level: number;
}

/** Cuts the units from `from` to before `to` into passages, in ascending order of start and end. */
export function cutUnits(text: string, units: readonly Unit[], from: number, to: number): TextSpan[] {
  const cuts: TextSpan[] = [];
  const last = units[to - 1]?.end ?? 0;
  let start = units[from]?.start ?? 0;
  /** The unit in which the passage starts. */
  let index = from;
  while (last - start > TARGET + MIN) {
    const end = chooseEnd(text, units, start, index, to);
    if (end >= last || (last - end < MIN && last - start <= MAX)) break;
    cuts.push({ start, end });
    while ((units[index]?.end ?? last) <= end) index += 1;
    start = nextStart(text, units, start, end, index);
    while ((units[index]?.start ?? 0) > start) index -= 1;
  }
  cuts.push({ start, end: last });
  return cuts;
}

/** The end of the passage that starts at `start` in unit `index`: at most MAX away, and not at white space. */
function chooseEnd(text: string, units: readonly Unit[], start: number, index: number, to: number): number {
  let best = 0;
  let row = 0;
  for (let at = index; at < to; at += 1) {
    const unit = units[at];
    if (unit === undefined || unit.end - start > MAX) break;
    // A heading stays with the text that follows it.
    if (unit.kind === "heading") continue;
    const length = unit.end - start;
    // Better one whole paragraph too many than a piece of it. The rest of a paragraph that was cut is cut again.
    if (length > TARGET) {
      if (best === 0 && unit.start >= start) return unit.end;
      break;
    }
    if (length >= LOW || (unit.kind === "row" && length >= MIN)) best = unit.end;
    if (unit.kind === "row") row = unit.end;
  }
  return best || row || endWithin(text, units, start, index);
}

function endWithin(text: string, units: readonly Unit[], start: number, index: number): number {
  let at = index;
  while ((units[at]?.end ?? Number.POSITIVE_INFINITY) < start + TARGET) at += 1;
  return trimmedEnd(
    text,
    start,
    endBefore(text, start + LOW, start + TARGET, units[at]?.kind ?? "paragraph"),
  );
}

/** The start of the next passage. `index` is the unit that contains or follows the text after `end`. */
function nextStart(text: string, units: readonly Unit[], start: number, end: number, index: number): number {
  const next = units[index];
  const last = next !== undefined && next.start < end ? index : index - 1;
  const before = units[last];
  const plain = Math.max(skipSpace(text, end), next?.start ?? 0);
  // Rows are not split: half a row would be read as a different one.
  if (next?.kind === "row" || before?.kind === "row" || plain - end > GAP || end - start < LOW) return plain;
  const from = Math.max(start + 1, repeatable(units, last, end - OVERLAP));
  return overlapStart(text, from, end, before?.kind === "code") ?? plain;
}

/** The first position from `from` on that has no row or heading between it and the end of unit `last`. */
function repeatable(units: readonly Unit[], last: number, from: number): number {
  for (let at = last - 1; at >= 0; at -= 1) {
    const unit = units[at];
    if (unit === undefined || unit.end <= from) break;
    if (unit.kind === "row" || unit.kind === "heading") return units[at + 1]?.start ?? from;
  }
  return from;
}
