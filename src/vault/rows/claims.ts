import type { Db, Tx } from "../../store/db.ts";

/** A document that is being written or removed. */
export interface UnfinishedDocument {
  readonly key: number;
  readonly workspaceId: number;
  readonly scopeId: number;
  readonly chunks: number;
  readonly pages: number;
}

/**
 * Which process is writing or removing a document that nobody sees. What nobody claims is left over from a process that
 * has ended, and is removed.
 */
export interface Claims {
  /** Claims a document in the transaction that writes its row, or hides it. */
  add(tx: Tx, document: number): void;
  /**
   * Keeps the claim until the transaction has ended.
   * @throws StoreUnavailable if others have given this process up, and are removing the document
   */
  hold(tx: Tx, document: number): Promise<void>;
  /** Gives the claim up, in the transaction that shows the document. */
  release(tx: Tx, document: number): void;
  /** Keeps these documents from being hidden until the transaction has ended. */
  keepShown(tx: Tx, documents: readonly number[]): Promise<void>;
  /** Claims the documents that nobody is writing or removing any more, and returns them in the order of their keys. */
  takeOver(db: Db): Promise<readonly UnfinishedDocument[]>;
}

/** The claims of the only process of a store. Whatever is unfinished when it starts belongs to an earlier one. */
export const ownClaims: Claims = {
  add() {},
  async hold() {},
  release() {},
  async keepShown() {},
  takeOver: (db) =>
    db.all<UnfinishedDocument>(
      `SELECT key, workspace_id AS "workspaceId", scope_id AS "scopeId", chunks, pages FROM vault_documents
       WHERE state <> 'live' ORDER BY key`,
    ),
};
