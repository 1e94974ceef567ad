import { type Erasure, parseErasure } from "../../proof/erasure.ts";
import { type ReportEntryFields, readEntryFields } from "./entry.ts";

/**
 * A line of `erasures.ndjson`: which of the range's texts were erased, with the entry that records it (anywhere in
 * the ledger) and the proof that the ledger contains that entry.
 */
export interface ErasureLine {
  readonly seq: number;
  readonly ts: string;
  readonly actor: string;
  /** Names of the range's texts, such as `12.input`. */
  readonly payloads?: readonly string[];
  /** Alternatively: the texts of all entries up to this one. */
  readonly up_to?: number;
  /** The entry's bytes. */
  readonly entry: string;
  /** Base64; in the bundle's tree. */
  readonly inclusion: readonly string[];
}

export interface SeqSpan {
  readonly first: number;
  readonly last: number;
}

/** The part of an erasure record that concerns a range; undefined if there is none. */
export function erasureWithin(
  bytes: string,
  { first, last }: SeqSpan,
): Omit<ErasureLine, "inclusion"> | undefined {
  const fields = readEntryFields(bytes);
  const erasure = fields && parseErasure(fields);
  if (!erasure) return undefined;
  const said = within(erasure, first, last);
  return said && { seq: fields.seq, ts: fields.ts, actor: fields.actor, ...said, entry: bytes };
}

/** Whether `erasures.ndjson` must list an entry for a range. */
export function erases(entry: ReportEntryFields, { first, last }: SeqSpan): boolean {
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
