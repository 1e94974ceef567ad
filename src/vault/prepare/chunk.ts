import { type ReadDocument, titleOf } from "../read/document.ts";
import { cutUnits, MAX, MIN, TARGET, type TextSpan, type Unit } from "./chunk-cut.ts";
import { trimmed } from "./chunk-text.ts";

/** A passage: `text.slice(start, end)`, without white space at either end. */
export interface Chunk {
  readonly start: number;
  readonly end: number;
  /** Titles of the headings above it, outermost first, without those inside the passage itself. */
  readonly headings: readonly string[];
}

/** A section shorter than this may share a passage with its neighbour. UTF-16 code units. */
const SMALL = 400;

/** Indices into the list of units, `from` inclusive and `to` exclusive. */
interface Section {
  readonly level: number;
  readonly from: number;
  to: number;
  readonly sections: Section[];
}

/**
 * Cuts a document into passages along its structure: a section that fits stays whole, small neighbours share a
 * passage, and long sections are cut between paragraphs, sentences or words, with a little overlap. Together the
 * passages contain all text from the first block on, in ascending order of start and end. Takes linear time.
 */
export function chunkDocument(document: ReadDocument): readonly Chunk[] {
  const units = unitsOf(document);
  if (units.length === 0) return [];
  const cuts = cutSection(document.text, units, sectionTree(units), 0);
  return withHeadings(document.text, units, cuts);
}

/** The blocks without surrounding white space, and the text between and after them as paragraphs. */
function unitsOf({ text, blocks }: ReadDocument): readonly Unit[] {
  const units: Unit[] = [];
  const add = (kind: Unit["kind"], level: number, from: number, to: number) => {
    const span = trimmed(text, from, to);
    if (span !== null) units.push({ kind, level, ...span });
  };
  let at = blocks[0]?.start ?? 0;
  for (const { kind, level, start, end } of blocks) {
    add("paragraph", 0, at, start);
    add(kind, level, start, end);
    at = end;
  }
  add("paragraph", 0, at, text.length);
  return units;
}

function sectionTree(units: readonly Unit[]): Section {
  const root: Section = { level: 0, from: 0, to: units.length, sections: [] };
  const open = [root];
  for (const [index, { kind, level }] of units.entries()) {
    if (kind !== "heading") continue;
    while (open.length > 1 && (open.at(-1)?.level ?? 0) >= level) close(open, index);
    const section: Section = { level, from: index, to: units.length, sections: [] };
    open.at(-1)?.sections.push(section);
    open.push(section);
  }
  return root;
}

function close(open: Section[], to: number): void {
  const section = open.pop();
  if (section !== undefined) section.to = to;
}

/**
 * The passages of a section and its subsections. It begins at unit `first`, which is before the section if the
 * preceding units are too short to form a passage. Recurses as deep as there are heading levels.
 */
function cutSection(text: string, units: readonly Unit[], section: Section, first: number): TextSpan[] {
  const whole = spanOf(units, first, section.to);
  if (lengthOf(whole) <= MAX) return [whole];
  const cuts: TextSpan[] = [];
  /** Units from here on may still share a passage with a neighbour. */
  let waiting = first;
  for (const { from, to, ...child } of section.sections) {
    const before = waiting < from ? spanOf(units, waiting, from) : null;
    const small = before !== null && Math.min(lengthOf(before), lengthOf(spanOf(units, from, to))) < SMALL;
    if (small && lengthOf(spanOf(units, waiting, to)) <= TARGET) continue;
    if (before !== null && !isLead(units, waiting, from)) {
      addCuts(text, units, cuts, waiting, from);
      waiting = from;
    }
    if (lengthOf(spanOf(units, waiting, to)) <= TARGET) continue;
    for (const cut of cutSection(text, units, { ...child, from, to }, waiting)) cuts.push(cut);
    waiting = to;
  }
  if (waiting < section.to) addCuts(text, units, cuts, waiting, section.to);
  return cuts;
}

/** Whether the units are only headings, or too short to stand alone before a section too long to join. */
function isLead(units: readonly Unit[], from: number, to: number): boolean {
  if (lengthOf(spanOf(units, from, to)) < MIN) return true;
  for (let index = from; index < to; index += 1) if (units[index]?.kind !== "heading") return false;
  return true;
}

function addCuts(text: string, units: readonly Unit[], cuts: TextSpan[], from: number, to: number): void {
  const span = spanOf(units, from, to);
  const last = cuts.at(-1);
  if (last !== undefined && lengthOf(span) < MIN && span.end - last.start <= MAX) {
    cuts[cuts.length - 1] = { start: last.start, end: span.end };
  } else if (lengthOf(span) <= MAX) cuts.push(span);
  else for (const cut of cutUnits(text, units, from, to)) cuts.push(cut);
}

function spanOf(units: readonly Unit[], from: number, to: number): TextSpan {
  return { start: units[from]?.start ?? 0, end: units[to - 1]?.end ?? 0 };
}

function lengthOf({ start, end }: TextSpan): number {
  return end - start;
}

function withHeadings(text: string, units: readonly Unit[], cuts: readonly TextSpan[]): readonly Chunk[] {
  const headings = units.filter(({ kind }) => kind === "heading");
  let above: { readonly level: number; readonly title: string | null }[] = [];
  let next = 0;
  let shared: readonly string[] = [];
  return cuts.map(({ start, end }) => {
    for (let heading = headings[next]; heading !== undefined && heading.start <= start; ) {
      const { level } = heading;
      above = above.filter((outer) => outer.level < level);
      if (heading.start === start) break;
      above.push({ level, title: titleOf(text.slice(heading.start, heading.end)) });
      next += 1;
      heading = headings[next];
    }
    const titles = above.flatMap(({ title }) => (title === null ? [] : [title]));
    // Passages of one section share their list of titles: a document may have a million passages.
    if (titles.length !== shared.length || titles.some((title, index) => title !== shared[index])) {
      shared = titles;
    }
    return { start, end, headings: shared };
  });
}
