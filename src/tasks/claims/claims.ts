import type { Db, Tx } from "../../store/db.ts";

/** This node no longer has the claim on a task, which another node continues. Nothing is written. */
export class ClaimLost extends Error {
  override readonly name = "ClaimLost";

  constructor(id: string) {
    super(`this node no longer has the claim on ${id}`);
  }
}

/** A task or a background response. */
export interface WorkKey {
  readonly workspaceId: number;
  readonly id: string;
}

/** The claim that this process had on some work when it asked for it. */
export interface Claim {
  /** Whether it still has it. If so, it cannot be lost before the transaction has ended. */
  isHeld(tx: Tx): Promise<boolean>;
}

/**
 * The claims of this node. Each open task and background response belongs to at most one node, and only that node
 * makes calls for it or writes what becomes of it.
 */
export interface TaskClaims {
  /** Whether other nodes may take what this one gives up. */
  readonly isShared: boolean;
  claim(workspaceId: number, id: string): Claim;
  /**
   * The store for one task. Its transactions throw `ClaimLost` unless the node that this process was when `fence` was
   * called still has the claim. The claim cannot be lost before the transaction has ended.
   */
  fence(db: Db, workspaceId: number, id: string): Db;
  /** Claims a new task for this node, in the transaction that stores it. */
  add(tx: Tx, workspaceId: number, id: string): void;
  /** Ends a claim, in the transaction that ends its task. */
  end(tx: Tx, workspaceId: number, id: string): void;
  /**
   * Gives up claims of this node, in the transaction that leaves the tasks ready for another node.
   * @param to the id of the node that gets them; null for whichever node is first
   */
  release(tx: Tx, keys: readonly WorkKey[], to: string | null): void;
  /**
   * Notes that a task can be resumed, in the transaction that queues it. If another node has it, that node resumes it.
   * @returns whether this node has to resume it
   */
  resume(tx: Tx, workspaceId: number, id: string): Promise<boolean>;
}

/** The claims of the only node that uses its store: they are always its own. */
export const localClaims: TaskClaims = {
  isShared: false,
  claim: () => ({ isHeld: async () => true }),
  fence: (db) => db,
  add() {},
  end() {},
  release() {},
  resume: async () => true,
};
