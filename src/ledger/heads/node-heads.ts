import { StoreUnavailable, type Tx } from "../../store/db.ts";
import type { Tail } from "../chain.ts";
import type { LedgerKeys } from "../keys/keys.ts";
import type { TreeHead } from "../proof/check.ts";
import { type CheckpointSeries, extendSeries, headText } from "../proof/head.ts";
import { headLeaf, nodeHeadText } from "../proof/node-head.ts";
import { formatNote } from "../proof/note.ts";
import type { GrowingTree } from "../proof/tree.ts";
import { sha256, TREE } from "../tree-hash.ts";
import { HeadTree } from "./head-tree.ts";
import { emptyLedger, grown, type LedgerEnd, type LedgerHeads, requireOpenedFor } from "./heads.ts";

export interface NodeHeadParts {
  readonly keys: Pick<LedgerKeys, "originOf" | "nodeOrigin" | "signHead" | "digestInTransaction">;
  nameOf(workspaceId: number): string;
}

interface State {
  /** The tree of the last commit. */
  tree: GrowingTree;
  committed: TreeHead;
  /** Includes entries appended by the open transaction. */
  tail: Tail;
  checkpoints: CheckpointSeries;
  /** Leaves of the open transaction, to be added to `tree`. */
  leaves: Uint8Array[];
  /** The series that the stored head covers besides `committed`; null if no head is stored. */
  signed: CheckpointSeries | null;
}

/** What one commit writes for a ledger. */
interface Written {
  readonly workspaceId: number;
  readonly state: State;
  readonly tree: GrowingTree;
  readonly head: TreeHead;
  readonly text: string;
}

const WRITE =
  "INSERT INTO ledger_heads (workspace_id, note) VALUES ($1, $2)" +
  " ON CONFLICT (workspace_id) DO UPDATE SET note = excluded.note";
const WRITE_NODE =
  "INSERT INTO ledger_node_heads (node, note) VALUES ($1, $2)" +
  " ON CONFLICT (node) DO UPDATE SET note = excluded.note";
/** A SQLite file has one writer, so there is one node. */
export const NODE = 1;

/**
 * The ends of all ledgers, in the memory of the only process that writes them. Their heads are signed together, as the
 * node's head, in the transaction of each commit.
 *
 * Nothing is read from the store again after startup, so an entry, tile or root that another program has written into
 * the file is never signed. A commit costs one signature (13 to 21 µs), however many ledgers exist or have grown. It
 * writes one row for each ledger that has grown, and one for the node.
 */
export class NodeHeads implements LedgerHeads {
  readonly #parts: NodeHeadParts;
  readonly #states = new Map<number, State>();
  readonly #changed = new Set<number>();
  /** The tree of the last commit's heads. */
  readonly #signed = new HeadTree();

  constructor(parts: NodeHeadParts) {
    this.#parts = parts;
  }

  /**
   * Adds a ledger's verified end. If `isSigned` is false, the next commit signs it. Ledgers MUST be added in the
   * order of their workspaces' numbers.
   */
  set(workspaceId: number, { tail, tree, checkpoints }: LedgerEnd, isSigned: boolean): void {
    const committed = { size: tree.size, root: tree.root() };
    const signed = isSigned ? checkpoints : null;
    this.#states.set(workspaceId, { tree, committed, tail, checkpoints, leaves: [], signed });
    if (isSigned)
      this.#signed.set(workspaceId, headLeaf(TREE, this.#textOf(workspaceId, committed, checkpoints)));
    else this.#changed.add(workspaceId);
  }

  async begin(tx: Tx, workspaceId: number): Promise<void> {
    const left =
      this.#states.has(workspaceId) ||
      (await tx.get(
        "SELECT 1 FROM ledger WHERE workspace_id = $1 UNION ALL SELECT 1 FROM ledger_heads WHERE workspace_id = $1 LIMIT 1",
        [workspaceId],
      )) !== undefined;
    if (left) throw new StoreUnavailable(`workspace ${workspaceId} has a ledger already`);
    this.set(workspaceId, emptyLedger(), false);
    tx.onRollback(() => {
      this.#states.delete(workspaceId);
      this.#changed.delete(workspaceId);
    });
  }

  /** Number and root of all ledgers' heads after the last commit, as covered by the node's head. */
  get together(): TreeHead {
    return { size: this.#signed.size, root: this.#signed.root() };
  }

  async committed(workspaceId: number): Promise<TreeHead> {
    return this.#of(workspaceId).committed;
  }

  async sizes(): Promise<ReadonlyMap<number, number>> {
    return new Map([...this.#states].map(([workspaceId, { committed }]) => [workspaceId, committed.size]));
  }

  tail(_: Tx, workspaceId: number): Tail {
    return this.#of(workspaceId).tail;
  }

  current(_: Tx, workspaceId: number): TreeHead {
    const { tree, leaves } = this.#of(workspaceId);
    const current = grown(tree, leaves);
    return { size: current.size, root: current.root() };
  }

  move(tx: Tx, workspaceId: number, tails: readonly Tail[]): void {
    requireOpenedFor(tx, workspaceId);
    const state = this.#of(workspaceId);
    const { tail, leaves } = state;
    const before = leaves.length;
    tx.onRollback(() => {
      state.tail = tail;
      state.leaves.length = before;
    });
    for (const { leaf } of tails) leaves.push(leaf);
    state.tail = tails.at(-1) ?? tail;
    this.#changed.add(workspaceId);
  }

  addCheckpoint(tx: Tx, workspaceId: number, note: string): void {
    requireOpenedFor(tx, workspaceId);
    const state = this.#of(workspaceId);
    const before = state.checkpoints;
    tx.onRollback(() => {
      state.checkpoints = before;
    });
    state.checkpoints = extendSeries(sha256, before, note);
    this.#changed.add(workspaceId);
  }

  /**
   * Signs and writes the heads of all ledgers that the group of transactions has changed. MUST be the last work of
   * each group.
   */
  async write(tx: Tx): Promise<void> {
    if (this.#changed.size === 0) return;
    const changed = [...this.#changed];
    const written = changed.sort((a, b) => a - b).flatMap((workspaceId) => this.#toWrite(workspaceId));
    if (written.length > 0) {
      this.#putLeaves(tx, written);
      for (const { workspaceId, text } of written) tx.write(WRITE, [workspaceId, text]);
      tx.write(WRITE_NODE, [NODE, this.#nodeNote()]);
    }
    tx.onCommit(() => {
      for (const workspaceId of changed) this.#changed.delete(workspaceId);
      for (const { state, tree, head } of written) {
        state.tree = tree;
        state.committed = head;
        state.leaves = [];
        state.signed = state.checkpoints;
      }
    });
  }

  /** Empty if the changes to the ledger were rolled back. */
  #toWrite(workspaceId: number): readonly Written[] {
    const state = this.#of(workspaceId);
    if (state.leaves.length === 0 && state.signed === state.checkpoints) return [];
    const tree = grown(state.tree, state.leaves);
    const head = { size: tree.size, root: tree.root() };
    return [{ workspaceId, state, tree, head, text: this.#textOf(workspaceId, head, state.checkpoints) }];
  }

  #textOf(workspaceId: number, head: TreeHead, checkpoints: CheckpointSeries): string {
    const { keys, nameOf } = this.#parts;
    return headText({ origin: keys.originOf(nameOf(workspaceId)), ...head, workspaceId, checkpoints });
  }

  #putLeaves(tx: Tx, written: readonly Written[]): void {
    for (const { workspaceId, text } of written) {
      const before = this.#signed.leafOf(workspaceId);
      tx.onRollback(() => {
        if (before) this.#signed.set(workspaceId, before);
        else this.#signed.removeLast(workspaceId);
      });
      this.#signed.set(workspaceId, headLeaf(TREE, text));
    }
  }

  #nodeNote(): string {
    const { keys } = this.#parts;
    const text = nodeHeadText({
      origin: keys.nodeOrigin,
      count: this.#signed.size,
      root: this.#signed.root(),
      keys: keys.digestInTransaction(),
    });
    return formatNote({ text, signatures: keys.signHead(keys.nodeOrigin, text) });
  }

  #of(workspaceId: number): State {
    const state = this.#states.get(workspaceId);
    if (!state) throw new Error(`the ledger of workspace ${workspaceId} was not begun`);
    return state;
  }
}
