import type { Sql } from "../store/db.ts";
import { keyOf } from "./keys.ts";
import type { VaultParts } from "./parts.ts";
import { deletePending, deleteVector } from "./spaces.ts";

/** Passages or pages taken out in one transaction: some 2 ms, with vectors in two spaces. */
const SLICE = 32;

interface Leftover {
  readonly key: number;
  readonly chunks: number;
  readonly pages: number;
}

/**
 * Takes what a document left behind out of the store, slice by slice, so that other calls get in between: text, passages,
 * vectors, and what stood of an index that was never shown. The document MUST be hidden already. Its row goes last: what is
 * broken off here, by a crash too, is taken up at the next start.
 */
export async function removeRest(parts: VaultParts, document: Leftover): Promise<void> {
  const { db, spaces } = parts;
  for (let from = 0; from < document.chunks; from += SLICE) {
    await db.tx(async (tx) => {
      const to = Math.min(from + SLICE, document.chunks);
      for (let place = from; place < to; place++) {
        const key = keyOf(document.key, place);
        for (const space of spaces.all) {
          if (space.dimensions > 0 && spaces.isAvailable) await deleteVector(tx, space, key);
        }
        await tx.run("DELETE FROM vault_chunks WHERE key = $1", [key]);
      }
    });
  }
  for (let from = 0; from < document.pages; from += SLICE) {
    const to = Math.min(from + SLICE, document.pages) - 1;
    await db.tx((tx) =>
      tx.run("DELETE FROM vault_pages WHERE key BETWEEN $1 AND $2", [
        keyOf(document.key, from),
        keyOf(document.key, to),
      ]),
    );
  }
  await db.tx(async (tx) => {
    for (const space of spaces.all) await deletePending(tx, space, document.key);
    await tx.run("DELETE FROM vault_segments WHERE document_key = $1 AND live = 0", [document.key]);
    // Vectors that cannot be reached now are removed by the first start that can.
    if (!hasUnreachableVectors(parts))
      await tx.run("DELETE FROM vault_documents WHERE key = $1", [document.key]);
  });
}

function hasUnreachableVectors({ spaces }: VaultParts): boolean {
  return !spaces.isAvailable && spaces.all.some(({ dimensions }) => dimensions > 0);
}

/** Documents that an earlier process had begun to write or to remove. */
export function unfinishedDocuments(sql: Sql): Promise<Leftover[]> {
  return sql.all<Leftover>(
    "SELECT key, chunks, pages FROM vault_documents WHERE state <> 'live' ORDER BY key",
  );
}
