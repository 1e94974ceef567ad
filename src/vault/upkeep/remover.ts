import type { Tx } from "../../store/db.ts";
import type { VaultParts } from "../parts.ts";
import { repeatIfRaced } from "../raced.ts";
import type { UnfinishedDocument } from "../rows/claims.ts";
import { keyOf } from "../rows/keys.ts";
import { deletePending, type Space } from "../rows/spaces.ts";

/** Passages or pages removed in one transaction: about 2 ms, with vectors in two spaces. */
const SLICE = 32;
const RETRY_MS = 5_000;

/**
 * Removes the remains of deleted documents from every file of the store. Only then is a deletion acknowledged;
 * anything that could not be removed is tried again, at the next start if need be.
 */
export class Remover {
  readonly #parts: VaultParts;
  /** Called with the number of passages removed from a scope. */
  readonly #freed: (scopeId: number, passages: number) => void;
  #waiting: UnfinishedDocument[] = [];
  #retrying: Promise<void> = Promise.resolve();
  #cancelRetry: (() => void) | null = null;
  #stopped = false;

  constructor(parts: VaultParts, freed: (scopeId: number, passages: number) => void) {
    this.#parts = parts;
    this.#freed = freed;
  }

  /** Removes what a process that has ended left unfinished. */
  async takeOver(): Promise<void> {
    const rest = await this.#parts.claims.takeOver(this.#parts.db);
    for (const document of rest) await this.remove(document);
    if (rest.length > 0) this.#parts.forgetting.forgetSoon();
  }

  /** Resolves when the last removal has finished. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelRetry?.();
    await this.#retrying;
  }

  /** Removes a document that is already hidden. Never throws: if the store fails, it tries again. */
  async remove(document: UnfinishedDocument): Promise<void> {
    try {
      await removeRest(this.#parts, document);
      this.#parts.forgetting.deleted();
      this.#freed(document.scopeId, document.chunks);
    } catch (error) {
      this.#parts.log.warn("the remains of a document could not be removed; it will be tried again", {
        error,
      });
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
 * Removes a document's remains from the store slice by slice, so that other calls can run in between: text, passages,
 * vectors, and index parts that never became visible. Its row is deleted last, together with its scope's row if it
 * was the last. Interrupted removals, including by a crash, are continued.
 */
async function removeRest(parts: VaultParts, document: UnfinishedDocument): Promise<void> {
  const { db, spaces, vectors } = parts;
  // Nobody adds vectors of a hidden document any more, so no space with vectors of it is missing.
  const present = await spaces.current();
  await removeCopies(parts, document, present);
  for (let from = 0; from < document.chunks; from += SLICE) {
    await db.tx(null, async (tx) => {
      const to = Math.min(from + SLICE, document.chunks);
      const [first, last] = [keyOf(document.key, from), keyOf(document.key, to - 1)];
      for (const space of present) {
        if (space.dimensions > 0 && vectors.isAvailable) vectors.remove(tx, space, first, last);
      }
      tx.write("DELETE FROM vault_chunks WHERE key BETWEEN $1 AND $2", [first, last]);
    });
  }
  for (let from = 0; from < document.pages; from += SLICE) {
    const to = Math.min(from + SLICE, document.pages) - 1;
    await db.tx(null, (tx) =>
      tx.run("DELETE FROM vault_pages WHERE key BETWEEN $1 AND $2", [
        keyOf(document.key, from),
        keyOf(document.key, to),
      ]),
    );
  }
  // Names the workspace, because it may delete a scope.
  await db.tx(document.workspaceId, async (tx) => {
    for (const space of present) deletePending(tx, space, document.key);
    tx.write("DELETE FROM vault_segments WHERE document_key = $1 AND live = 0", [document.key]);
    if (hasUnreachableVectors(parts)) {
      // The next start that can reach the vectors removes them. Until then, only this row identifies them.
      tx.write(
        "UPDATE vault_documents SET title = '', source_uri = NULL, source_hash = NULL, metadata = '{}' WHERE key = $1",
        [document.key],
      );
      return;
    }
    tx.write("DELETE FROM vault_documents WHERE key = $1", [document.key]);
    deleteUnusedScope(tx, document.scopeId);
  });
}

/** Rebuilds the segments that contain copies of the document's vectors. */
async function removeCopies(
  parts: VaultParts,
  { key, scopeId, workspaceId }: UnfinishedDocument,
  present: readonly Space[],
): Promise<void> {
  const { db, vectors, merger, locks } = parts;
  const { segments } = vectors;
  if (!segments) return;
  for (const space of present) {
    if (space.dimensions === 0 || !segments.isFor(space)) continue;
    await repeatIfRaced(() =>
      locks.run(workspaceId, async () => {
        const request = { scopeId, document: key, space: space.id };
        const change = await merger.do("without", request, { workspaceId });
        if (change.removed.length === 0) return;
        await db.tx(null, (tx) => segments.swap(tx, space, scopeId, change), { turnOf: workspaceId });
      }),
    );
  }
}

function hasUnreachableVectors({ spaces }: VaultParts): boolean {
  return !spaces.isAvailable && spaces.all.some(({ dimensions }) => dimensions > 0);
}

/** A path may be confidential too. A document being written keeps its scope alive through its own row. */
function deleteUnusedScope(tx: Tx, scopeId: number): void {
  tx.write(
    `DELETE FROM vault_scopes WHERE id = $1
       AND NOT EXISTS (SELECT 1 FROM vault_documents WHERE scope_id = $1 AND state = 'live')
       AND NOT EXISTS (SELECT 1 FROM vault_documents WHERE scope_id = $1 AND state <> 'live')
       AND NOT EXISTS (SELECT 1 FROM vault_segments WHERE scope_id = $1 AND live = 1)`,
    [scopeId],
  );
}
