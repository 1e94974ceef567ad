import { type Erasure, parseErasure } from "../../proof/erasure.ts";
import { type EntryFields, readEntryFields } from "./entry.ts";

/**
 * A line of `erasures.ndjson`: what was erased of the range's texts, by whom, with the entry that says so and the proof that
 * it is in the ledger, wherever that entry lies.
 */
export interface ErasureLine {
  readonly seq: number;
  readonly ts: string;
  readonly actor: string;
  /** Texts of the range by name, such as `12.input`. */
  readonly payloads?: readonly string[];
  /** Or: the texts of every entry up to this one. */
  readonly up_to?: number;
  /** The bytes of the entry. */
  readonly entry: string;
  /** Base64, in the tree of the bundle. */
  readonly inclusion: readonly string[];
}

export interface Span {
  readonly first: number;
  readonly last: number;
}

/** What a record says of texts of a range; undefined where it says nothing of them. */
export function erasureWithin(
  bytes: string,
  { first, last }: Span,
): Omit<ErasureLine, "inclusion"> | undefined {
  const fields = readEntryFields(bytes);
  const erasure = fields && parseErasure(fields);
  if (!erasure) return undefined;
  const said = within(erasure, first, last);
  return said && { seq: fields.seq, ts: fields.ts, actor: fields.actor, ...said, entry: bytes };
}

/** Whether an entry is of those that `erasures.ndjson` lists for a range. */
export function erases(entry: EntryFields, { first, last }: Span): boolean {
  const erasure = parseErasure(entry);
  return erasure !== null && within(erasure, first, last) !== undefined;
}

function within(
  erasure: Erasure,
  first: number,
  last: number,
): Pick<ErasureLine, "payloads" | "up_to"> | undefined {
  if ("upTo" in erasure) return erasure.upTo >= first && first <= last ? { up_to: erasure.upTo } : undefined;
  const payloads = erasure.payloads
    .filter(({ seq }) => seq >= first && seq <= last)
    .map(({ seq, kind }) => `${seq}.${kind}`);
  return payloads.length > 0 ? { payloads } : undefined;
}

export function formatErasure(line: ErasureLine): string {
  return `${JSON.stringify(line)}\n`;
}
