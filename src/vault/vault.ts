import { type Boundary, isInside } from "../access/memory-scope.ts";
import type { Clock } from "../base/clock.ts";
import { Problem } from "../base/errors.ts";
import { type Ids, isId } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import { type Embedder, EmbeddingFailed } from "../models/embedder.ts";
import type { Db } from "../store/db.ts";
import { Compactor } from "./compact.ts";
import type { VaultDocument } from "./document.ts";
import { Filler } from "./fill.ts";
import { LEXICAL_DIMENSIONS, LEXICAL_SPACE } from "./lexical.ts";
import { Locks } from "./locks.ts";
import type { SearchAnswer, SearchRequest, VectorQuestion } from "./messages.ts";
import type { Commit, VaultParts } from "./parts.ts";
import { removeRest, unfinishedDocuments } from "./remove.ts";
import { Spaces } from "./spaces.ts";
import { type DocumentFilter, findDocument, hideDocument, listDocuments, readPages } from "./store.ts";
import { VaultWorker } from "./workers.ts";
import { type Announce, type WriteRequest, type Written, writeDocument } from "./write.ts";

const SEARCH_MS = 30_000;
const READ_MS = 120_000;
const MERGE_MS = 60_000;
const SEARCHES_AT_ONCE = 64;
const SEARCHES_WAITING = 2_000;
const DOCUMENTS_WAITING = 256;
const MERGES_WAITING = 1_000;
/** The index of some 150,000 passages. */
const SEARCH_CACHE_BYTES = 96 * 1024 * 1024;
const MERGE_CACHE_BYTES = 8 * 1024 * 1024;
const FORGET_MS = 2_000;

export interface VaultOptions {
  readonly db: Db;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  /** The database's file, for the workers' own connections. */
  readonly database: string;
  /** Where sqlite-vec was loaded from; null where there is none. */
  readonly extension: string | null;
  /** The workers' program: `worker.ts` beside this file, as it can be found when it runs. */
  readonly program: URL;
  readonly embedder: Embedder | null;
}

export type SearchOptions = Omit<SearchRequest, "vectors">;

/** A workspace's documents: written, searched and removed inside of boundaries. */
export interface Vault {
  /** Removes what an earlier process left unfinished, and begins to fill in vectors. */
  start(): Promise<void>;
  /** Ends the workers, and resolves when nothing is written any more. */
  stop(): Promise<void>;
  /** @throws Problem 429 `rate_limited` where too many searches wait */
  search(options: SearchOptions): Promise<SearchAnswer>;
  /** @throws see `writeDocument` */
  write(request: WriteRequest, commit: Commit, announce: Announce): Promise<Written>;
  /** @throws Problem 404 `not_found`, also for a document outside of the boundary */
  find(workspaceId: number, boundary: Boundary, id: string): Promise<VaultDocument>;
  text(document: VaultDocument): Promise<string>;
  list(
    workspaceId: number,
    boundary: Boundary,
    filter: DocumentFilter,
    limit: number,
    before: string | undefined,
  ): Promise<VaultDocument[]>;
  /**
   * Hides a document in one transaction with the call's evidence, then takes it out of every file of the store.
   * @throws Problem 404 `not_found`
   */
  remove(workspaceId: number, boundary: Boundary, id: string, commit: Commit): Promise<void>;
}

export async function openVault(options: VaultOptions): Promise<Vault> {
  const { db, clock, ids, log, embedder, database, extension, program } = options;
  const spaces = new Spaces(db, clock, extension !== null);
  const setup = { database, extension };
  const searcher = new VaultWorker({
    program,
    setup: { ...setup, cacheBytes: SEARCH_CACHE_BYTES },
    timeoutMs: SEARCH_MS,
    atOnce: SEARCHES_AT_ONCE,
    waiting: SEARCHES_WAITING,
  });
  const reader = new VaultWorker({
    program,
    setup: { ...setup, cacheBytes: 0 },
    timeoutMs: READ_MS,
    atOnce: 1,
    waiting: DOCUMENTS_WAITING,
  });
  const merger = new VaultWorker({
    program,
    setup: { ...setup, cacheBytes: MERGE_CACHE_BYTES },
    timeoutMs: MERGE_MS,
    atOnce: 1,
    waiting: MERGES_WAITING,
  });
  const parts: VaultParts = {
    db,
    clock,
    ids,
    log,
    spaces,
    embedder,
    locks: new Locks(),
    searcher,
    reader,
    merger,
  };
  const compactor = new Compactor(parts);
  const filler = new Filler(parts);
  let lastKey = await highestKey(db);
  let cancelForget = () => {};
  let isForgetting = false;

  await spaces.open(embedder?.space ?? LEXICAL_SPACE, embedder ? 0 : LEXICAL_DIMENSIONS);

  /** What was replaced leaves the log soon after; a deletion waits for it. */
  function forgetSoon(): void {
    if (isForgetting) return;
    isForgetting = true;
    cancelForget = clock.after(FORGET_MS, () => {
      isForgetting = false;
      db.forget().catch((error: unknown) =>
        log.warn("what was replaced stays in the log for a while", { error }),
      );
    });
  }

  async function find(workspaceId: number, boundary: Boundary, id: string): Promise<VaultDocument> {
    const document = isId("doc", id)
      ? await findDocument(db, workspaceId, spaces.active?.id ?? 0, id)
      : undefined;
    if (!document || !isInside(boundary, document.scope)) {
      throw new Problem("not_found", `There is no document ${JSON.stringify(id)}.`);
    }
    return document;
  }

  /** Null where no vectors can be searched now: the words still are. */
  async function vectorsFor(query: string): Promise<VectorQuestion | null> {
    const space = spaces.active;
    if (!space || space.dimensions === 0 || !spaces.isAvailable) return null;
    if (space.name === LEXICAL_SPACE) return { space: space.id, vector: null };
    // The model that filled this space is not configured any more, and the new one's is not full yet.
    if (embedder?.space !== space.name) return null;
    try {
      const [vector] = await embedder.embed([query], "query");
      return vector?.length === space.dimensions ? { space: space.id, vector } : null;
    } catch (error) {
      if (!(error instanceof EmbeddingFailed)) throw error;
      log.warn("a search falls back to words", { model: embedder.model, reason: error.reason });
      return null;
    }
  }

  return {
    async start() {
      for (const rest of await unfinishedDocuments(db)) await removeRest(parts, rest);
      filler.start();
    },
    async stop() {
      cancelForget();
      await filler.stop();
      await compactor.stop();
      for (const worker of [searcher, reader, merger]) worker.stop();
      if (isForgetting) await db.forget().catch(() => false);
    },
    async search(request) {
      const vectors = request.mode === "keyword" ? null : await vectorsFor(request.query);
      return searcher.do("search", { ...request, vectors });
    },
    async write(request, commit, announce) {
      const written = await writeDocument(parts, () => ++lastKey, request, commit, announce);
      compactor.added(request.workspaceId, written.document.scopeId);
      if (!written.isNew) forgetSoon();
      return written;
    },
    find,
    text: (document) => readPages(db, document),
    list: (workspaceId, boundary, filter, limit, before) =>
      listDocuments(db, workspaceId, spaces.active?.id ?? 0, boundary, filter, limit, before),
    async remove(workspaceId, boundary, id, commit) {
      const removed = await parts.locks.run(workspaceId, async () => {
        const document = await find(workspaceId, boundary, id);
        const change = await merger.do("without", { scopeId: document.scopeId, document: document.key });
        await commit((tx) => hideDocument(tx, document.key, change, document.scopeId));
        return document;
      });
      await removeRest(parts, removed);
      if (!(await db.forget())) {
        log.warn("a deleted document stays in the log until its readers leave", { document: id });
        forgetSoon();
      }
    },
  };
}

async function highestKey(db: Db): Promise<number> {
  // Also past documents that are gone: a key never comes back.
  const row = await db.get<{ seq: number }>("SELECT seq FROM sqlite_sequence WHERE name = 'vault_documents'");
  return row?.seq ?? 0;
}
