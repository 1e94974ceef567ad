import {
  type CommitWork,
  type Db,
  type LedgerTail,
  type SqlValue,
  StoreUnavailable,
  type Tx,
} from "../../store/db.ts";
import type { Tail } from "../chain.ts";
import type { LedgerKeys, TxId } from "../keys/keys.ts";
import type { TreeHead } from "../proof/check.ts";
import { extendSeries } from "../proof/head.ts";
import { formatNote } from "../proof/note.ts";
import { sharedHeadText } from "../proof/shared-head.ts";
import { sha256 } from "../tree-hash.ts";
import { emptyLedger, grown, type LedgerEnd, type LedgerHeads, requireOpenedFor } from "./heads.ts";
import { edgeOf, endOfTail, KeysUnknown, TailChanged } from "./stored-tail.ts";

export interface SharedHeadParts {
  readonly db: Pick<Db, "all" | "get" | "afterLock">;
  readonly keys: Pick<
    LedgerKeys,
    "originOf" | "signHead" | "hasSigned" | "digestInTransaction" | "isDigest" | "reload"
  >;
  nameOf(workspaceId: number): string;
}

/** The end of a ledger as a commit has stored it. */
interface StoredEnd extends LedgerEnd {
  /** The signed head. */
  readonly head: string;
  readonly treeHead: TreeHead;
}

/** The end of a ledger in an open transaction. */
interface OpenEnd {
  readonly stored: LedgerEnd;
  end: LedgerEnd;
  /** Leaves of the transaction, to be added to the stored tree. */
  readonly leaves: Uint8Array[];
}

const WRITE =
  "INSERT INTO ledger_tails (workspace_id, head, edge) VALUES ($1, $2, $3)" +
  " ON CONFLICT (workspace_id) DO UPDATE SET head = excluded.head, edge = excluded.edge";
/** The second line of a head is the size of the tree. */
const SIZES =
  "SELECT workspace_id, split_part(head, E'\\n', 2) AS size FROM ledger_tails WHERE head IS NOT NULL";
const READ = "SELECT head, edge FROM ledger_tails WHERE workspace_id = $1 AND head IS NOT NULL";

/**
 * The ends of ledgers in a store that several nodes share. A ledger's end is its row in `ledger_tails`, which a
 * transaction has locked before it appends. It contains the signed head and the edge of the tree: what the next root
 * requires. So any node can continue any ledger, without an entry being read, and only from an end that the key has
 * signed.
 *
 * This process remembers the ends that it has seen, and trusts them as long as the row has the same head. A head that
 * another node has signed is verified once (60 to 100 microseconds). A commit costs one signature for each ledger that it
 * changes (13 to 21 microseconds).
 */
export class SharedHeads implements LedgerHeads {
  readonly #parts: SharedHeadParts;
  readonly #known = new Map<number, StoredEnd>();
  readonly #Changes: new () => TailChanges;

  constructor(parts: SharedHeadParts) {
    this.#parts = parts;
    const keep = (workspaceId: number, end: StoredEnd) => this.#keep(workspaceId, end);
    this.#Changes = class extends TailChanges {
      constructor() {
        super(parts, keep);
      }
    };
    parts.db.afterLock((tx) => this.#learnKeys(tx));
  }

  /** Learns of keys with which other nodes have replaced the key. Everything else is found when a tail is used. */
  #learnKeys(tx: Tx): Promise<void> | undefined {
    for (const [workspaceId, row] of tx.lockedTails) {
      if (this.#known.get(workspaceId)?.head === row.head) continue;
      if (this.#problemOf(workspaceId, row) instanceof KeysUnknown)
        return this.#parts.keys.reload(tx, workspaceId);
    }
    return undefined;
  }

  #problemOf(workspaceId: number, row: LedgerTail): unknown {
    try {
      this.#read(workspaceId, row);
      return undefined;
    } catch (error) {
      return error;
    }
  }

  async begin(tx: Tx, workspaceId: number): Promise<void> {
    const left = await tx.get(
      "SELECT 1 FROM ledger WHERE workspace_id = $1 UNION ALL SELECT 1 FROM ledger_tails WHERE workspace_id = $1 AND head IS NOT NULL LIMIT 1",
      [workspaceId],
    );
    if (left !== undefined) throw new StoreUnavailable(`workspace ${workspaceId} has a ledger already`);
    tx.shared(this.#Changes).add(tx, workspaceId, emptyLedger(), true);
  }

  tail(tx: Tx, workspaceId: number): Tail {
    return this.#openEnd(tx, workspaceId).end.tail;
  }

  current(tx: Tx, workspaceId: number): TreeHead {
    const { stored, leaves } = this.#openEnd(tx, workspaceId);
    const tree = grown(stored.tree, leaves);
    return { size: tree.size, root: tree.root() };
  }

  move(tx: Tx, workspaceId: number, tails: readonly Tail[]): void {
    requireOpenedFor(tx, workspaceId);
    const open = this.#openEnd(tx, workspaceId);
    for (const { leaf } of tails) open.leaves.push(leaf);
    open.end = { ...open.end, tail: tails.at(-1) ?? open.end.tail };
    tx.shared(this.#Changes).change(workspaceId);
  }

  addCheckpoint(tx: Tx, workspaceId: number, note: string): void {
    requireOpenedFor(tx, workspaceId);
    const open = this.#openEnd(tx, workspaceId);
    open.end = { ...open.end, checkpoints: extendSeries(sha256, open.end.checkpoints, note) };
    tx.shared(this.#Changes).change(workspaceId);
  }

  async committed(workspaceId: number): Promise<TreeHead> {
    const { db, keys } = this.#parts;
    const row = await db.get<LedgerTail>(READ, [workspaceId]);
    if (row && this.#known.get(workspaceId)?.head !== row.head) {
      if (this.#problemOf(workspaceId, row) instanceof KeysUnknown) await keys.reload(db, workspaceId);
    }
    return this.stored(workspaceId, row).treeHead;
  }

  async sizes(): Promise<ReadonlyMap<number, number>> {
    const rows = await this.#parts.db.all<{ workspace_id: number; size: string }>(SIZES);
    return new Map(
      rows.flatMap(({ workspace_id, size }) =>
        /^\d{1,15}$/.test(size) ? [[workspace_id, Number(size)]] : [],
      ),
    );
  }

  /** @throws StoreUnavailable if the key has not signed this end of the ledger, or there is none */
  stored(workspaceId: number, row: LedgerTail | undefined): StoredEnd {
    const known = this.#known.get(workspaceId);
    if (known && known.head === row?.head) return known;
    if (!row) throw new StoreUnavailable(`the end of the ledger of workspace ${workspaceId} is missing`);
    try {
      return this.#read(workspaceId, row);
    } catch (error) {
      if (!(error instanceof TailChanged)) throw error;
      throw new StoreUnavailable(`the ledger of workspace ${workspaceId} ${error.message}`, error);
    }
  }

  /** @throws TailChanged */
  #read(workspaceId: number, row: LedgerTail): StoredEnd {
    const end = endOfTail(this.#parts, workspaceId, row);
    return this.#keep(workspaceId, { ...end, head: row.head, treeHead: headOf(end) });
  }

  /** Transactions may end in another order on this node than in the database, so the newest end is kept. */
  #keep(workspaceId: number, end: StoredEnd): StoredEnd {
    const known = this.#known.get(workspaceId);
    if (!known || isAtLeast(end, known)) this.#known.set(workspaceId, end);
    return end;
  }

  #openEnd(tx: Tx, workspaceId: number): OpenEnd {
    const changes = tx.shared(this.#Changes);
    const open = changes.get(workspaceId);
    if (open) return open;
    requireOpenedFor(tx, workspaceId);
    // Before, because reading the row may remember its end.
    const known = this.#known.get(workspaceId);
    const stored = this.stored(workspaceId, tx.lockedTails.get(workspaceId));
    // The row is locked, so nobody has a later end. Its entries must not be signed a second time.
    if (known && !isAtLeast(stored, known)) {
      throw new StoreUnavailable(
        `the ledger of workspace ${workspaceId} ends before entry ${known.tail.seq}, which this server knows: an earlier state was put back`,
      );
    }
    return changes.add(tx, workspaceId, stored, false);
  }
}

/** The ends of the ledgers that the transactions of one commit use. */
class TailChanges implements CommitWork {
  readonly #parts: SharedHeadParts;
  readonly #keep: (workspaceId: number, end: StoredEnd) => void;
  readonly #open = new Map<number, OpenEnd>();
  readonly #changed = new Set<number>();
  #txId: TxId = this;

  constructor(parts: SharedHeadParts, keep: (workspaceId: number, end: StoredEnd) => void) {
    this.#parts = parts;
    this.#keep = keep;
  }

  get(workspaceId: number): OpenEnd | undefined {
    return this.#open.get(workspaceId);
  }

  add(tx: Tx, workspaceId: number, stored: LedgerEnd, isNew: boolean): OpenEnd {
    this.#txId = tx.lockedTails;
    const open: OpenEnd = { stored, end: stored, leaves: [] };
    this.#open.set(workspaceId, open);
    if (isNew) this.#changed.add(workspaceId);
    return open;
  }

  change(workspaceId: number): void {
    this.#changed.add(workspaceId);
  }

  async write(tx: Tx): Promise<void> {
    for (const workspaceId of this.#changed) {
      const open = this.#open.get(workspaceId);
      if (!open) throw new Error(`the ledger of workspace ${workspaceId} was changed, but not opened`);
      const end = { ...open.end, tree: grown(open.stored.tree, open.leaves) };
      const head = writeTail(tx, this.#parts, workspaceId, end, this.#txId);
      tx.onCommit(() => this.#keep(workspaceId, { ...end, head, treeHead: headOf(end) }));
    }
  }
}

/** Signs a ledger's end and writes it. @returns the signed head */
export function writeTail(
  tx: Pick<Tx, "write">,
  { keys, nameOf }: Pick<SharedHeadParts, "keys" | "nameOf">,
  workspaceId: number,
  end: LedgerEnd,
  txId: TxId,
): string {
  const origin = keys.originOf(nameOf(workspaceId));
  const text = sharedHeadText({
    ...{ origin, workspaceId, ...headOf(end), checkpoints: end.checkpoints },
    ...{ lastTs: end.tail.ts, lastLeaf: end.tail.leaf, keys: keys.digestInTransaction(txId) },
  });
  const head = formatNote({ text, signatures: keys.signHead(origin, text, txId) });
  const row: SqlValue[] = [workspaceId, head, edgeOf(end.tree)];
  tx.write(WRITE, row);
  return head;
}

function headOf({ tree }: LedgerEnd): TreeHead {
  return { size: tree.size, root: tree.root() };
}

/** Both the entries and the checkpoints of a ledger only become more. */
function isAtLeast(end: StoredEnd, other: StoredEnd): boolean {
  return end.tree.size >= other.tree.size && end.checkpoints.count >= other.checkpoints.count;
}
