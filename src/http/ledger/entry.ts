import { parsedEntry } from "../../ledger/reading/parsed-entry.ts";
import type { StoredEntry } from "../../ledger/reading/query.ts";

/** The fields of an entry, in the contract's order. */
const ABSENT = {
  seq: null,
  prev: null,
  leaf: null,
  ts: null,
  phase: null,
  ref: null,
  action: null,
  outcome: null,
  code: null,
  channel: null,
  request_id: null,
  actor: null,
  agent: null,
  tier: null,
  model: null,
  task: null,
  tool: null,
  input_hash: null,
  output_hash: null,
  credits: null,
  oversight: null,
  detail: null,
};

export type EntryView = { readonly [field in keyof typeof ABSENT]: unknown };

/** The entry as JSON with every field of the contract; null if the stored bytes lack it. */
export function viewEntry(entry: StoredEntry): EntryView {
  return { ...ABSENT, seq: entry.seq, ...parsedEntry(entry.bytes), leaf: entry.leaf.toHex() };
}

const SEQ = /^[1-9]\d{0,14}$/;

/** Whether a path segment or a cursor's key can be an entry's number. */
export function isSeq(text: string): boolean {
  return SEQ.test(text);
}
