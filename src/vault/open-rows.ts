import type { Nodes } from "../nodes/nodes.ts";
import type { Db } from "../store/db.ts";
import type { IndexLocation } from "./messages.ts";
import { type Claims, ownClaims } from "./rows/claims.ts";
import type { DocumentKeys } from "./rows/document-keys.ts";
import { sharedClaims } from "./rows/shared-claims.ts";
import { sharedKeys } from "./rows/shared-keys.ts";
import { sharedSpaceLocks } from "./rows/shared-space-locks.ts";
import { sharedVectors } from "./rows/shared-vectors.ts";
import { ownSpaces, type SpaceLocks } from "./rows/space-locks.ts";
import { sqliteKeys } from "./rows/sqlite-keys.ts";
import { vec0Vectors } from "./rows/vec0.ts";
import type { VectorStore } from "./rows/vector-store.ts";

/** What depends on the store's engine, and on whether other nodes write into it. */
export interface VaultRows {
  readonly vectors: VectorStore;
  readonly claims: Claims;
  readonly keys: DocumentKeys;
  readonly spaceLocks: SpaceLocks;
}

export async function openRows(db: Db, index: IndexLocation, nodes: Nodes): Promise<VaultRows> {
  if (index.engine === "sqlite") {
    return {
      vectors: vec0Vectors(index.extension !== null),
      claims: ownClaims,
      keys: await sqliteKeys(db),
      spaceLocks: ownSpaces,
    };
  }
  return {
    vectors: sharedVectors,
    claims: sharedClaims(nodes),
    keys: sharedKeys(db),
    spaceLocks: sharedSpaceLocks(nodes.bus),
  };
}
