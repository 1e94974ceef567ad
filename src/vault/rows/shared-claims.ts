import type { Nodes } from "../../nodes/nodes.ts";
import { StoreUnavailable } from "../../store/db.ts";
import type { Claims, UnfinishedDocument } from "./claims.ts";

/** Unfinished documents whose node is gone, or that no node has claimed. */
const ORPHANS = `SELECT d.key, d.workspace_id AS "workspaceId", d.scope_id AS "scopeId", d.chunks, d.pages
  FROM vault_documents AS d
  WHERE d.state <> 'live' AND NOT EXISTS (SELECT 1 FROM vault_claims AS c JOIN nodes AS n ON n.id = c.node_id WHERE c.document_key = d.key)
  ORDER BY d.key`;

/**
 * Claims of nodes that share a store, as rows. A node that was given up for dead while it was frozen cannot go on with
 * a document once another node has taken its claim over.
 */
export function sharedClaims(nodes: Pick<Nodes, "id">): Claims {
  return {
    add(tx, document) {
      tx.write(
        `INSERT INTO vault_claims (document_key, node_id) VALUES ($1, $2)
         ON CONFLICT (document_key) DO UPDATE SET node_id = excluded.node_id`,
        [document, nodes.id],
      );
    },
    async hold(tx, document) {
      const held = await tx.get(
        "SELECT 1 FROM vault_claims WHERE document_key = $1 AND node_id = $2 FOR SHARE",
        [document, nodes.id],
      );
      if (!held) throw new StoreUnavailable("another node has taken over what this node was writing");
    },
    release: (tx, document) => tx.write("DELETE FROM vault_claims WHERE document_key = $1", [document]),
    async keepShown(tx, documents) {
      await tx.all("SELECT key FROM vault_documents WHERE key = ANY ($1::bigint[]) ORDER BY key FOR SHARE", [
        `{${documents.join(",")}}`,
      ]);
    },
    takeOver(db) {
      return db.tx(null, async (tx) => {
        const orphans = await tx.all<UnfinishedDocument>(ORPHANS);
        for (const { key } of orphans) this.add(tx, key);
        return orphans;
      });
    },
  };
}
