import { type Clock, timestamp } from "../base/clock.ts";
import type { RandomSource } from "../base/ids.ts";
import type { Db, Tx } from "../store/db.ts";
import { type Draft, encodeEntry, leafHash } from "./entry.ts";
import { keepPayload, type SaltedHash, saltedHash } from "./payload.ts";

export interface Ledger {
  /**
   * Appends within a transaction, so that what happened and its evidence last together or not at all.
   * @returns the entry's seq, from 1, without gaps in its workspace.
   */
  append(tx: Tx, workspaceId: number, draft: Draft): Promise<number>;
  /** Appends alone; resolves once the entry is on disk. @throws StoreUnavailable */
  record(workspaceId: number, draft: Draft): Promise<number>;
}

/** The end of a workspace's chain. Kept in memory, since this process is the only writer. */
interface Tail {
  readonly seq: number;
  readonly leaf: Uint8Array;
  readonly leafHex: string;
  /** Milliseconds of the last entry: times never go backwards, so that they can be searched by halving. */
  readonly ts: number;
}

const EMPTY: Tail = { seq: 0, leaf: new Uint8Array(32), leafHex: "0".repeat(64), ts: 0 };

export function createLedger(db: Db, clock: Clock, random: RandomSource): Ledger {
  const tails = new Map<number, Tail>();

  async function append(tx: Tx, workspaceId: number, draft: Draft): Promise<number> {
    const tail = tails.get(workspaceId) ?? (await readTail(tx, workspaceId));
    const now = Math.max(clock.now(), tail.ts);
    const seq = tail.seq + 1;
    const input = draft.input === undefined ? undefined : saltedHash(draft.input, random);
    const output = draft.output === undefined ? undefined : saltedHash(draft.output, random);
    const bytes = encodeEntry(draft, {
      seq,
      prev: tail.leafHex,
      ts: timestamp(now),
      inputHash: input?.hash,
      outputHash: output?.hash,
    });
    const leaf = leafHash(bytes);
    // Whatever becomes of this transaction, a tail that does not last is read again from the store.
    tx.onRollback(() => tails.delete(workspaceId));
    await tx.run("INSERT INTO ledger (workspace_id, seq, prev, leaf, bytes) VALUES ($1, $2, $3, $4, $5)", [
      workspaceId,
      seq,
      tail.leaf,
      leaf,
      bytes,
    ]);
    tails.set(workspaceId, { seq, leaf, leafHex: leaf.toString("hex"), ts: now });
    if (input) await keep(tx, workspaceId, seq, "input", draft.input, input, now);
    if (output) await keep(tx, workspaceId, seq, "output", draft.output, output, now);
    return seq;
  }

  return {
    append,
    record(workspaceId, draft) {
      const single = draft.input === undefined && draft.output === undefined;
      return db.tx((tx) => append(tx, workspaceId, draft), { single });
    },
  };
}

async function keep(
  tx: Tx,
  workspaceId: number,
  seq: number,
  kind: "input" | "output",
  text: string | undefined,
  { salt }: SaltedHash,
  now: number,
): Promise<void> {
  if (text !== undefined) await keepPayload(tx, { workspaceId, seq, kind, now }, text, salt);
}

async function readTail(tx: Tx, workspaceId: number): Promise<Tail> {
  const row = await tx.get<{ seq: number; leaf: Uint8Array; ts: string }>(
    "SELECT seq, leaf, bytes->>'ts' AS ts FROM ledger WHERE workspace_id = $1 ORDER BY seq DESC LIMIT 1",
    [workspaceId],
  );
  if (!row) return EMPTY;
  return {
    seq: row.seq,
    leaf: row.leaf,
    leafHex: Buffer.from(row.leaf).toString("hex"),
    ts: Date.parse(row.ts),
  };
}
