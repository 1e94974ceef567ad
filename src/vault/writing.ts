import { isInside } from "../access/memory-scope.ts";
import type { Tx } from "../store/db.ts";
import type { VaultDocument } from "./document.ts";
import { holdInside, notNameable, seesEverything } from "./may-write.ts";
import type { PreparedDocument } from "./messages.ts";
import type { Commit } from "./parts.ts";
import { Raced, repeatIfRaced } from "./raced.ts";
import {
  findDocument,
  hideDocument,
  insertChunk,
  insertDocument,
  insertPage,
  insertSegment,
  type NewDocument,
  scopeIdOf,
  showDocument,
} from "./rows/documents.ts";
import { keyOf } from "./rows/keys.ts";
import { putDown, putDownAll, type Space } from "./rows/spaces.ts";
import type { PassageVector } from "./rows/vector-store.ts";
import { LEXICAL_DIMENSIONS, LEXICAL_SPACE } from "./terms/lexical.ts";
import type { WriteParts, WriteRequest, WriteResult } from "./write.ts";

/** Rows written in one transaction: about 2 ms of passages with vectors, or of text. */
const CHUNKS_AT_ONCE = 32;
const PAGES_AT_ONCE = 16;

export interface WrittenContent {
  readonly key: number;
  readonly id: string;
  readonly prepared: PreparedDocument;
  /** Vectors of the configured model; there may be fewer vectors than passages. */
  readonly vectors: readonly (Float32Array | null)[];
}

/** Makes the document visible, with the creation of the one that it replaces. */
type ShowDocument = (tx: Tx, replaced: VaultDocument | undefined) => Promise<void>;
/** Writes a part of the document. */
type WriteSlice = (tx: Tx) => void;

/** Writes a document to the store in slices that stay invisible until the last one. */
export class Writing {
  readonly #parts: WriteParts;
  readonly #request: WriteRequest;
  readonly #content: WrittenContent;
  #document: NewDocument | null = null;
  /** The spaces in which its passages get vectors. */
  #spaces: readonly Space[] = [];

  constructor(parts: WriteParts, request: WriteRequest, content: WrittenContent) {
    this.#parts = parts;
    this.#request = request;
    this.#content = content;
  }

  async write(commit: Commit): Promise<WriteResult> {
    const slices = this.#slices();
    const now = this.#parts.clock.now();
    // A small document is written in the transaction that makes it visible.
    const isSmall = slices.length <= 3;
    const show = async (tx: Tx, replaced: VaultDocument | undefined) => {
      const spaces = await this.#parts.spaces.forWriting(tx);
      if (isSmall) {
        this.#spaces = spaces;
        this.#document = await this.#insert(tx, now);
        for (const slice of slices) slice(tx);
      } else await this.#catchUp(tx, spaces);
      const created = replaced
        ? { at: replaced.createdAt, by: replaced.createdBy }
        : { at: now, by: this.#request.createdBy };
      showDocument(tx, this.#begun(), created);
    };
    if (isSmall) return this.#replace(commit, show);
    try {
      await this.#writeSlices(slices, now);
      return await this.#replace(commit, show);
    } catch (error) {
      // Undo the partial write.
      if (this.#document) await this.#parts.remover.remove(this.#document);
      throw error;
    }
  }

  /** Writes all of a long document before anybody sees it. */
  async #writeSlices(slices: readonly WriteSlice[], now: number): Promise<void> {
    const { db, claims, spaces } = this.#parts;
    const { key } = this.#content;
    const { workspaceId } = this.#request;
    this.#spaces = spaces.written;
    // Names the workspace, because it may create a scope.
    this.#document = await db.tx(workspaceId, async (tx) => {
      const document = await this.#insert(tx, now);
      claims.add(tx, key);
      return document;
    });
    for (const slice of slices) {
      const work = async (tx: Tx) => {
        await claims.hold(tx, key);
        slice(tx);
      };
      await db.tx(null, work, { turnOf: workspaceId });
    }
  }

  /** What has happened to a long document since its first slice: others may have given it up, or added spaces. */
  async #catchUp(tx: Tx, spaces: readonly Space[]): Promise<void> {
    const { claims } = this.#parts;
    await claims.hold(tx, this.#content.key);
    claims.release(tx, this.#content.key);
    for (const space of spaces) {
      if (!this.#spaces.some(({ id }) => id === space.id)) putDownAll(tx, space, this.#content.key);
    }
  }

  /**
   * Makes the new document visible and hides its predecessor, in one transaction. Errors after that MUST NOT be
   * thrown: the document exists.
   *
   * A new document can lose the race against another one with the same id, which it then replaces.
   */
  #replace(commit: Commit, show: ShowDocument): Promise<WriteResult> {
    return repeatIfRaced(async () => {
      if (!(await this.#isThere())) return this.#show(commit, show);
      const { workspaceId } = this.#request;
      // Inside the lock, nothing else on this node replaces or removes it; only a new one could interfere.
      const replaced = await this.#parts.locks.run(workspaceId, async () => {
        const current = await this.#find(this.#parts.db);
        if (!current) throw new Raced("the document is gone");
        return this.#showInPlaceOf(current, commit, show);
      });
      await this.#parts.remover.remove({ ...replaced.removed, workspaceId });
      return replaced.written;
    });
  }

  async #isThere(): Promise<boolean> {
    return this.#request.id !== undefined && (await this.#find(this.#parts.db)) !== undefined;
  }

  async #show(commit: Commit, show: ShowDocument): Promise<WriteResult> {
    const document = await commit(async (tx, boundary) => {
      holdInside(boundary, this.#request.scope);
      if (this.#request.id !== undefined) {
        if (!seesEverything(boundary)) throw notNameable();
        if (await this.#find(tx)) throw new Raced("the id is taken");
      }
      await show(tx, undefined);
      tx.onCommit(() => this.#changed(this.#request.scope, "written"));
      return this.#find(tx);
    });
    return { document: there(document), isNew: true };
  }

  async #showInPlaceOf(
    replaced: VaultDocument,
    commit: Commit,
    show: ShowDocument,
  ): Promise<{ readonly written: WriteResult; readonly removed: VaultDocument }> {
    if (!isInside(this.#request.boundary, replaced.scope)) throw notNameable();
    const { workspaceId } = this.#request;
    const change = await this.#parts.merger.do(
      "without",
      { scopeId: replaced.scopeId, document: replaced.key, space: null },
      { workspaceId },
    );
    const document = await commit(async (tx, boundary) => {
      holdInside(boundary, this.#request.scope);
      if (!isInside(boundary, replaced.scope)) throw notNameable();
      const still = await this.#find(tx);
      if (still?.key !== replaced.key) throw new Raced("the document was replaced or removed");
      await hideDocument(tx, replaced.key, change, replaced.scopeId);
      this.#parts.claims.add(tx, replaced.key);
      await show(tx, replaced);
      const { scope } = this.#request;
      tx.onCommit(() => {
        if (replaced.scope !== scope) this.#changed(replaced.scope, "deleted");
        this.#changed(scope, "written");
      });
      return this.#find(tx);
    });
    return { written: { document: there(document), isNew: false }, removed: replaced };
  }

  #changed(scope: string, change: "written" | "deleted"): void {
    const { workspaceId } = this.#request;
    this.#parts.changed.emit({ workspaceId, id: this.#content.id, scope, change });
  }

  #find(sql: Tx | WriteParts["db"]): Promise<VaultDocument | undefined> {
    return findDocument(sql, this.#request.workspaceId, this.#parts.spaces.active?.id ?? 0, this.#content.id);
  }

  async #insert(tx: Tx, now: number): Promise<NewDocument> {
    const { workspaceId, scope, title, sourceUri, metadata, content, createdBy } = this.#request;
    const { key, id, prepared } = this.#content;
    const { hashes } = this.#parts;
    const document = {
      key,
      workspaceId,
      id,
      scopeId: await scopeIdOf(tx, workspaceId, scope),
      title,
      sourceUri,
      sourceHash: sourceUri === null ? null : hashes.source(sourceUri),
      metadata,
      metadataHashes: Object.entries(metadata).map(([name, value]) => hashes.metadata(name, value)),
      contentType: content.type,
      contentHash: prepared.contentHash,
      characters: prepared.characters,
      chunks: prepared.passages.length,
      pages: prepared.pages.length,
      createdBy,
      createdAt: now,
      updatedAt: now,
    };
    insertDocument(tx, document);
    return document;
  }

  #slices(): WriteSlice[] {
    const { key, prepared } = this.#content;
    const slices: WriteSlice[] = [];
    for (let from = 0; from < prepared.pages.length; from += PAGES_AT_ONCE) {
      slices.push((tx) => {
        for (const [index, page] of prepared.pages.slice(from, from + PAGES_AT_ONCE).entries()) {
          insertPage(tx, key, from + index, page);
        }
      });
    }
    for (let from = 0; from < prepared.passages.length; from += CHUNKS_AT_ONCE) {
      slices.push((tx) => this.#insertChunks(tx, from));
    }
    for (const segment of prepared.segments) {
      slices.push((tx) => insertSegment(tx, this.#begun().scopeId, key, segment));
    }
    return slices;
  }

  /** The document's row, which also keeps its scope alive: both exist before the first slice. */
  #begun(): NewDocument {
    if (!this.#document) throw new Error("the document has no row");
    return this.#document;
  }

  #insertChunks(tx: Tx, from: number): void {
    const { ids, vectors } = this.#parts;
    const { key, prepared } = this.#content;
    const passages = prepared.passages.slice(from, from + CHUNKS_AT_ONCE);
    for (const [index, passage] of passages.entries()) {
      insertChunk(tx, key, from + index, ids("chk"), passage);
    }
    for (const space of this.#spaces) {
      const known: PassageVector[] = [];
      for (const [index] of passages.entries()) {
        const place = from + index;
        const vector = this.#vector(space, place);
        if (vector === null) continue;
        if (vector && vectors.isAvailable) known.push({ key: keyOf(key, place), vector });
        else putDown(tx, space, keyOf(key, place));
      }
      vectors.insert(tx, space, this.#begun().scopeId, known);
    }
  }

  /** Null: a passage without words has no vector in this space. Undefined: the vector will be added later. */
  #vector(space: Space, place: number): Float32Array | null | undefined {
    const { prepared, vectors } = this.#content;
    if (space.name === LEXICAL_SPACE) {
      const from = place * LEXICAL_DIMENSIONS;
      const vector = prepared.vectors.subarray(from, from + LEXICAL_DIMENSIONS);
      return vector.every((number) => number === 0) ? null : vector;
    }
    if (space.name !== this.#parts.embedder?.space || space.dimensions === 0) return undefined;
    const vector = vectors[place] ?? undefined;
    return vector?.length === space.dimensions ? vector : undefined;
  }
}

function there(document: VaultDocument | undefined): VaultDocument {
  if (!document) throw new Error("a document was not written");
  return document;
}
