import { timestamp } from "../base/clock.ts";
import { type Sql, StoreUnavailable } from "../store/db.ts";
import { type EntryDraft, encodeEntry, leafHash } from "./entry.ts";

/** The end of a workspace's chain. */
export interface Tail {
  readonly seq: number;
  readonly leaf: Uint8Array;
  readonly leafHex: string;
  /** Time of the last entry in milliseconds. Times never go backwards, so they can be found by binary search. */
  readonly ts: number;
}

/** An entry in the chain: its bytes, and the tail it results in. */
export interface ChainedEntry {
  readonly bytes: string;
  readonly prev: Uint8Array;
  readonly tail: Tail;
}

export interface PayloadHashes {
  readonly input?: string | undefined;
  readonly output?: string | undefined;
}

/** The tail of a ledger without entries. */
export const EMPTY_TAIL: Tail = { seq: 0, leaf: new Uint8Array(32), leafHex: "0".repeat(64), ts: 0 };

/** Appends a draft to a tail. @throws TypeError if the draft is not canonical (contains a float) */
export function link(
  tail: Tail,
  draft: EntryDraft,
  clockMs: number,
  hashes: PayloadHashes = {},
): ChainedEntry {
  const ts = Math.max(clockMs, tail.ts);
  const seq = tail.seq + 1;
  const bytes = encodeEntry(draft, {
    seq,
    prev: tail.leafHex,
    ts: timestamp(ts),
    inputHash: hashes.input,
    outputHash: hashes.output,
  });
  const leaf = leafHash(bytes);
  return { bytes, prev: tail.leaf, tail: { seq, leaf, leafHex: leaf.toString("hex"), ts } };
}

/** @throws StoreUnavailable if this program did not write the last entry: nothing can be appended to it */
export async function readTail(sql: Pick<Sql, "get">, workspaceId: number): Promise<Tail> {
  const row = await sql.get<{ seq: number; leaf: Uint8Array; bytes: string }>(
    "SELECT seq, leaf, bytes FROM ledger WHERE workspace_id = $1 ORDER BY seq DESC LIMIT 1",
    [workspaceId],
  );
  if (!row) return EMPTY_TAIL;
  return {
    seq: row.seq,
    leaf: row.leaf,
    leafHex: Buffer.from(row.leaf).toString("hex"),
    ts: timeOf(row.seq, row.bytes),
  };
}

function timeOf(seq: number, bytes: string): number {
  try {
    const time = Date.parse((JSON.parse(bytes) as { ts: string }).ts);
    if (!Number.isNaN(time)) return time;
  } catch {
    // Reported below.
  }
  throw new StoreUnavailable(`this program did not write the ledger's last entry, ${seq}`);
}
