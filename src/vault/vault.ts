import { type Boundary, isInside } from "../access/memory-scope.ts";
import type { Clock } from "../base/clock.ts";
import { Problem } from "../base/errors.ts";
import { type Ids, isId, type RandomSource } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { VaultSettings } from "../config/config.ts";
import { type Embedder, EmbeddingFailed } from "../models/embed/embedder.ts";
import { JobOverLimit } from "../reading/job-errors.ts";
import type { Db } from "../store/db.ts";
import type { Forgetting } from "../store/forgetting.ts";
import { CharactersUnderWay } from "./characters-under-way.ts";
import type { VaultDocument } from "./document.ts";
import { Locks } from "./locks.ts";
import type { Metadata, SearchAnswer, SearchRequest, VectorQuestion } from "./messages.ts";
import type { Commit, DocumentChange, VaultParts } from "./parts.ts";
import { DocumentReading } from "./reading/reading.ts";
import { findDocument, findScope, hideDocument, listDocuments, readText } from "./rows/documents.ts";
import { openHashes } from "./rows/hashes.ts";
import { listScopes, type VaultScope } from "./rows/scopes.ts";
import { type Space, Spaces } from "./rows/spaces.ts";
import { LEXICAL_DIMENSIONS, LEXICAL_SPACE } from "./terms/lexical.ts";
import { Filler } from "./upkeep/backfill.ts";
import { Compactor, Tidier } from "./upkeep/compactor.ts";
import { Remover } from "./upkeep/remover.ts";
import { WorkerThread } from "./worker-thread.ts";
import { type Announce, type WriteRequest, type Written, writeDocument } from "./write.ts";

const SEARCH_MS = 30_000;
const MERGE_MS = 60_000;
/** Enough to leave the thread no pause between two searches. */
const SEARCHES_AT_ONCE = 2;
const SEARCHES_WAITING = { perWorkspace: 500, total: 4_000 };
const MERGES_WAITING = { perWorkspace: 1_000, total: 10_000 };
/** So long a search waits for its question's vector; words are searched without it. */
const QUERY_MS = 2_000;
/** A thread that has read many documents keeps some 40 MB; one that searches has the index in memory. */
const IDLE_MS = 5_000;
const SEARCHER_IDLE_MS = 600_000;
/** The index of some 150,000 passages. */
const SEARCH_CACHE_BYTES = 96 * 1024 * 1024;
const MERGE_CACHE_BYTES = 8 * 1024 * 1024;

export interface VaultOptions {
  readonly db: Db;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  readonly random: RandomSource;
  /** MUST be stopped after the vault. */
  readonly forgetting: Forgetting;
  /** The database's file, for the workers' own connections. */
  readonly database: string;
  /** Where sqlite-vec was loaded from; null where there is none. */
  readonly extension: string | null;
  /** The workers' program: `worker.ts` beside this file, as it can be found when it runs. */
  readonly program: URL;
  /** The program's entry, which reading processes are started with. */
  readonly main: URL;
  readonly reading: VaultSettings;
  readonly embedder: Embedder | null;
  /**
   * A model that was configured before, for as long as its vectors are searched; null where its provider is not there any
   * more.
   */
  readonly formerEmbedder: (model: string) => Promise<Embedder | null>;
  /** Told of each document that was written or deleted, once that is on disk. */
  documentChanged(change: DocumentChange): void;
}

export type SearchOptions = Omit<SearchRequest, "vectors" | "filter"> & {
  /** Names and values that a document's metadata must have, all of them. */
  readonly filter: Metadata;
};

export interface ListFilter {
  readonly sourceUri?: string | undefined;
}

/** A workspace's documents: written, searched and removed inside of boundaries. */
export interface Vault {
  /** Removes what an earlier process left unfinished, and begins to fill in vectors. */
  start(): Promise<void>;
  /** Ends the workers, and resolves when nothing is written any more. */
  stop(): Promise<void>;
  /**
   * `signal`: aborted when the caller has left; a search whose turn has not come by then is not made.
   * @throws Problem 429 `queue_full` when too many searches wait
   */
  search(options: SearchOptions, signal?: AbortSignal): Promise<SearchAnswer>;
  /** @throws see `writeDocument` */
  write(request: WriteRequest, commit: Commit, announce: Announce): Promise<Written>;
  /** @throws Problem 404 `not_found`, also for a document outside of the boundary */
  find(workspaceId: number, boundary: Boundary, id: string): Promise<VaultDocument>;
  /** A document's text, or the stretch from `start` up to `end`. */
  text(document: VaultDocument, start?: number, end?: number): Promise<string>;
  list(
    workspaceId: number,
    boundary: Boundary,
    filter: ListFilter,
    limit: number,
    before: string | undefined,
  ): Promise<VaultDocument[]>;
  /** The scopes inside that documents lie in, by path, after the path `after`; one more than `limit` when there are more. */
  scopes(
    workspaceId: number,
    boundary: Boundary,
    limit: number,
    after: string | undefined,
  ): Promise<VaultScope[]>;
  /**
   * Hides a document in one transaction with the call's evidence, then takes it out of every file of the store.
   * @throws Problem 404 `not_found`
   */
  remove(workspaceId: number, boundary: Boundary, id: string, commit: Commit): Promise<void>;
}

export async function openVault(options: VaultOptions): Promise<Vault> {
  const { db, clock, ids, log, forgetting, embedder, database, extension, program, main } = options;
  const spaces = new Spaces(db, clock, extension !== null);
  const hashes = await openHashes(db, options.random);
  const setup = { database, extension };
  const searcher = new WorkerThread({
    program,
    setup: { ...setup, cacheBytes: SEARCH_CACHE_BYTES },
    timeoutMs: SEARCH_MS,
    atOnce: SEARCHES_AT_ONCE,
    waiting: SEARCHES_WAITING,
    idleMs: SEARCHER_IDLE_MS,
  });
  const reading = new DocumentReading({ limits: options.reading, main, worker: program, log });
  const merger = new WorkerThread({
    program,
    setup: { ...setup, cacheBytes: MERGE_CACHE_BYTES },
    timeoutMs: MERGE_MS,
    atOnce: 1,
    waiting: MERGES_WAITING,
    idleMs: IDLE_MS,
  });
  const parts: VaultParts = {
    db,
    clock,
    ids,
    log,
    forgetting,
    spaces,
    hashes,
    embedder,
    locks: new Locks(),
    documentChanged: (change) => options.documentChanged(change),
    searcher,
    reading,
    merger,
  };
  await spaces.open(embedder?.space ?? LEXICAL_SPACE, embedder ? 0 : LEXICAL_DIMENSIONS);
  const former = await formerOf(spaces.active);
  const compactor = new Compactor(parts);
  const tidier = new Tidier(parts);
  const remover = new Remover(parts, (scopeId, passages) => tidier.freed(scopeId, passages));
  const filler = new Filler(parts, embedderOf);
  let lastKey = await highestKey(db);
  const underWay = new CharactersUnderWay();
  const writeParts = { ...parts, remover, filler, newKey: () => ++lastKey };

  /** While another model's space is filled, the old one still answers, if its model can be asked. */
  async function formerOf(space: Space | undefined): Promise<Embedder | null> {
    if (!space || space.name === LEXICAL_SPACE || space.name === embedder?.space) return null;
    const made = await options.formerEmbedder(space.name.slice(0, space.name.indexOf("|")));
    return made?.space === space.name ? made : null;
  }

  function embedderOf({ name }: Space): Embedder | null {
    return [embedder, former].find((each) => each?.space === name) ?? null;
  }

  async function find(workspaceId: number, boundary: Boundary, id: string): Promise<VaultDocument> {
    // The scope first: to count what a document outside still waits for would take time that tells of it.
    const scope = isId("doc", id) ? await findScope(db, workspaceId, id) : undefined;
    if (scope === undefined || !isInside(boundary, scope)) throw notThere(id);
    const document = await findDocument(db, workspaceId, spaces.active?.id ?? 0, id);
    // It may have been moved since.
    if (!document || !isInside(boundary, document.scope)) throw notThere(id);
    return document;
  }

  /** Null where no vectors can be searched now: the words still are. */
  async function vectorsFor({ workspaceId, query }: SearchOptions): Promise<VectorQuestion | null> {
    const space = spaces.active;
    if (!space || space.dimensions === 0 || !spaces.isAvailable) return null;
    if (space.name === LEXICAL_SPACE) return { space: space.id, vector: null };
    const asked = embedderOf(space);
    // The model that filled this space is not configured any more, and the new one's is not full yet.
    if (asked === null) return null;
    if (filler.isResting(space)) return null;
    const tooLong = new AbortController();
    const cancel = clock.after(QUERY_MS, () => tooLong.abort());
    try {
      const [vector] = await asked.embed([query], "query", { workspaceId, signal: tooLong.signal });
      filler.recovered(space);
      if (vector?.length === space.dimensions) return { space: space.id, vector };
      log.error("the embedding model is not the one that it was; words are searched", { model: asked.model });
    } catch (error) {
      if (!(error instanceof EmbeddingFailed || tooLong.signal.aborted)) throw error;
      const reason = error instanceof EmbeddingFailed ? error.reason : "slow";
      log.warn("a search falls back to words", { model: asked.model, reason });
      filler.rest(space, error instanceof EmbeddingFailed ? error.retryAfterMs : 0);
    } finally {
      cancel();
    }
    return null;
  }

  return {
    async start() {
      await remover.start();
      await compactor.start();
      filler.start();
    },
    async stop() {
      await filler.stop();
      await compactor.stop();
      await tidier.stop();
      for (const worker of [searcher, merger]) worker.stop();
      await reading.stop();
      await remover.stop();
    },
    async search(request, signal) {
      const vectors = request.mode === "keyword" ? null : await vectorsFor(request);
      const filter = Object.entries(request.filter).map(([name, value]) => hashes.metadata(name, value));
      try {
        const { workspaceId } = request;
        return await searcher.do("search", { ...request, filter, vectors }, { workspaceId, signal });
      } catch (error) {
        if (!(error instanceof JobOverLimit)) throw error;
        throw new Problem("internal", `The search ${error.message}.`, { cause: error });
      }
    },
    async write(request, commit, announce) {
      const written = await underWay.within(request, () =>
        writeDocument(writeParts, request, commit, announce),
      );
      compactor.added(request.workspaceId, written.document.scopeId);
      if (!written.isNew) forgetting.forgetSoon();
      return written;
    },
    find,
    text: (document, start = 0, end = document.characters) => readText(db, document.key, start, end),
    list(workspaceId, boundary, { sourceUri }, limit, before) {
      const source = sourceUri === undefined ? undefined : hashes.source(sourceUri);
      return listDocuments(db, workspaceId, spaces.active?.id ?? 0, boundary, { source }, limit, before);
    },
    scopes: (workspaceId, boundary, limit, after) => listScopes(db, workspaceId, boundary, limit, after),
    async remove(workspaceId, boundary, id, commit) {
      const removed = await parts.locks.run(workspaceId, async () => {
        const document = await find(workspaceId, boundary, id);
        const change = await merger.do(
          "without",
          { scopeId: document.scopeId, document: document.key },
          { workspaceId },
        );
        await commit((tx, now) => {
          if (!isInside(now, document.scope)) throw notThere(id);
          const { scope } = document;
          tx.onCommit(() => parts.documentChanged({ workspaceId, id, scope, change: "deleted" }));
          return hideDocument(tx, document.key, change, document.scopeId);
        });
        return document;
      });
      await remover.remove(removed);
      await forgetting.forget();
    },
  };
}

function notThere(id: string): Problem {
  return new Problem("not_found", `There is no document ${JSON.stringify(id)}.`);
}

async function highestKey(db: Db): Promise<number> {
  // Also past documents that are gone: a key never comes back.
  const row = await db.get<{ seq: number }>("SELECT seq FROM sqlite_sequence WHERE name = 'vault_documents'");
  return row?.seq ?? 0;
}
