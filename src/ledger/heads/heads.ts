import type { Db, Sql, Tx } from "../../store/db.ts";
import { EMPTY_TAIL, type Tail } from "../chain.ts";
import type { LedgerKeys } from "../keys/keys.ts";
import type { TreeHead } from "../proof/check.ts";
import { type CheckpointSeries, NO_CHECKPOINTS } from "../proof/head.ts";
import { GrowingTree } from "../proof/tree.ts";
import type { NamedWorkspace } from "../stored-end.ts";
import { TREE } from "../tree-hash.ts";

/**
 * The ends of all ledgers, and their heads: what the ledgers' key signs of them in each commit. Nothing that another
 * program has written into the store is ever signed.
 *
 * Within a transaction, the workspace MUST be one that it was opened for (`Tx.ledgers`).
 */
export interface LedgerHeads {
  /**
   * Begins the ledger of a workspace that the transaction creates.
   * @throws StoreUnavailable if the store has entries or a head of a workspace with this number
   */
  begin(tx: Tx, workspaceId: number): Promise<void>;
  /** Includes entries appended by the transaction. @throws StoreUnavailable if the head was changed */
  tail(tx: Tx, workspaceId: number): Tail;
  /** Size and root, including entries appended by the transaction. @throws StoreUnavailable if the head was changed */
  current(tx: Tx, workspaceId: number): TreeHead;
  /** Advances the tail past entries that the transaction appends. */
  move(tx: Tx, workspaceId: number, tails: readonly Tail[]): void;
  /** Adds a checkpoint that the transaction stores to the ledger's series. */
  addCheckpoint(tx: Tx, workspaceId: number, note: string): void;
  /** Size and root after the last commit. @throws StoreUnavailable if they cannot be read, or were changed */
  committed(workspaceId: number): Promise<TreeHead>;
  /** The sizes of all ledgers, unverified: only a reason to look at them. */
  sizes(): Promise<ReadonlyMap<number, number>>;
}

/** The end of one ledger. */
export interface LedgerEnd {
  readonly tail: Tail;
  /** The tree of all entries. */
  readonly tree: GrowingTree;
  readonly checkpoints: CheckpointSeries;
}

export interface OpenHeadsParts {
  readonly db: Db;
  readonly keys: LedgerKeys;
  workspaces(): readonly NamedWorkspace[];
  nameOf(workspaceId: number): string;
}

/** A ledger that predates signed heads. */
export interface UnsignedLedger {
  readonly workspaceId: number;
  readonly size: number;
  /** Number of entries that a stored checkpoint covers. */
  readonly checkpointSize: number;
}

export interface OpenHeads {
  readonly heads: LedgerHeads;
  /** Ledgers that have entries and no head yet. The transaction that signs them MUST record it in each. */
  readonly unsigned: readonly UnsignedLedger[];
  /**
   * `first`: no head is stored. `upgrade`: the heads are signed in an earlier way. In both cases the next commit signs
   * them.
   */
  readonly state: "signed" | "first" | "upgrade";
}

/** Where the heads are, and how they are signed. */
export interface HeadStore {
  /**
   * Verifies that the key has signed exactly the end of each ledger. MUST run before anything is appended.
   * @throws OperatorError if a ledger is longer or shorter than the one that was signed, or has different entries
   */
  open(parts: OpenHeadsParts): Promise<OpenHeads>;
  /** Whether any head is stored. */
  isSigned(sql: Pick<Sql, "get">): Promise<boolean>;
}

/** The end of a ledger without entries. */
export function emptyLedger(): LedgerEnd {
  return { tail: EMPTY_TAIL, tree: new GrowingTree(TREE), checkpoints: NO_CHECKPOINTS };
}

/** The tree with more leaves. */
export function grown(tree: GrowingTree, leaves: readonly Uint8Array[]): GrowingTree {
  const copy = tree.copy();
  for (const leaf of leaves) copy.append(leaf);
  return copy;
}

/** @throws Error if the transaction was opened for other ledgers: a bug, which PostgreSQL could answer with a deadlock */
export function requireOpenedFor(tx: Tx, workspaceId: number): void {
  if (!tx.ledgers.includes(workspaceId)) {
    throw new Error(
      `the transaction was opened for the ledgers [${tx.ledgers.join(", ")}], not for ${workspaceId}`,
    );
  }
}
