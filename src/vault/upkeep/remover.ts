import type { Sql, Tx } from "../../store/db.ts";
import type { VaultParts } from "../parts.ts";
import { keyOf } from "../rows/keys.ts";
import { deletePending, deleteVector } from "../rows/spaces.ts";

/** Passages or pages taken out in one transaction: some 2 ms, with vectors in two spaces. */
const SLICE = 32;
const RETRY_MS = 5_000;

export interface Leftover {
  readonly key: number;
  readonly scopeId: number;
  readonly chunks: number;
  readonly pages: number;
}

/**
 * Takes what documents left behind out of every file of the store: a deletion is acknowledged after that, and what could
 * not be taken out then is tried again until it is, also by the next start.
 */
export class Remover {
  readonly #parts: VaultParts;
  /** Told how many passages of a scope are gone. */
  readonly #freed: (scopeId: number, passages: number) => void;
  #waiting: Leftover[] = [];
  #retrying: Promise<void> = Promise.resolve();
  #cancelRetry: (() => void) | null = null;
  #stopped = false;

  constructor(parts: VaultParts, freed: (scopeId: number, passages: number) => void) {
    this.#parts = parts;
    this.#freed = freed;
  }

  /** Takes up what an earlier process had begun to write or to remove. */
  async start(): Promise<void> {
    const rest = await unfinishedDocuments(this.#parts.db);
    for (const document of rest) await this.remove(document);
    if (rest.length > 0) this.#parts.forgetting.forgetSoon();
  }

  /** Resolves when nothing is removed any more. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelRetry?.();
    await this.#retrying;
  }

  /** Takes out a document that is hidden already. Never throws: where the store fails, it is tried again. */
  async remove(document: Leftover): Promise<void> {
    try {
      await removeRest(this.#parts, document);
      this.#parts.forgetting.deleted();
      this.#freed(document.scopeId, document.chunks);
    } catch (error) {
      this.#parts.log.warn("what a document left behind will be removed later", { error });
      this.#waiting.push(document);
      this.#retrySoon();
    }
  }

  #retrySoon(): void {
    if (this.#cancelRetry !== null || this.#stopped) return;
    this.#cancelRetry = this.#parts.clock.after(RETRY_MS, () => {
      this.#cancelRetry = null;
      this.#retrying = this.#retrying.then(() => this.#retry());
    });
  }

  async #retry(): Promise<void> {
    for (const document of this.#waiting.splice(0)) await this.remove(document);
    this.#parts.forgetting.forgetSoon();
  }
}

/**
 * Takes what a document left behind out of the store, slice by slice, so that other calls get in between: text, passages,
 * vectors, and what stood of an index that was never shown. Its row goes last, and with the last one of its scope the
 * scope's: what is broken off here, by a crash too, is taken up again.
 */
async function removeRest(parts: VaultParts, document: Leftover): Promise<void> {
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
    if (hasUnreachableVectors(parts)) {
      // They are removed by the first start that can; until then the row says which they are, and nothing else.
      await tx.run(
        "UPDATE vault_documents SET title = '', source_uri = NULL, source_hash = NULL, metadata = '{}' WHERE key = $1",
        [document.key],
      );
      return;
    }
    await tx.run("DELETE FROM vault_documents WHERE key = $1", [document.key]);
    await deleteUnusedScope(tx, document.scopeId);
  });
}

function hasUnreachableVectors({ spaces }: VaultParts): boolean {
  return !spaces.isAvailable && spaces.all.some(({ dimensions }) => dimensions > 0);
}

/** A path may say something too. A document that is being written holds its scope by its own row. */
async function deleteUnusedScope(tx: Tx, scopeId: number): Promise<void> {
  await tx.run(
    `DELETE FROM vault_scopes WHERE id = $1
       AND NOT EXISTS (SELECT 1 FROM vault_documents WHERE scope_id = $1 AND state = 'live')
       AND NOT EXISTS (SELECT 1 FROM vault_documents WHERE scope_id = $1 AND state <> 'live')
       AND NOT EXISTS (SELECT 1 FROM vault_segments WHERE scope_id = $1 AND live = 1)`,
    [scopeId],
  );
}

function unfinishedDocuments(sql: Sql): Promise<Leftover[]> {
  return sql.all<Leftover>(
    `SELECT key, scope_id AS "scopeId", chunks, pages FROM vault_documents WHERE state <> 'live' ORDER BY key`,
  );
}
