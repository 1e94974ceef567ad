import { type Boundary, isInside } from "../access/memory-scope.ts";
import type { Clock } from "../base/clock.ts";
import { Problem } from "../base/errors.ts";
import { type Ids, isId, type RandomSource } from "../base/ids.ts";
import { Locks } from "../base/locks.ts";
import type { Log } from "../base/log.ts";
import { Signal } from "../base/signal.ts";
import type { VaultSettings } from "../config/config.ts";
import { type Embedder, EmbeddingFailed } from "../models/embed/embedder.ts";
import type { Nodes } from "../nodes/nodes.ts";
import { JobOverLimit } from "../reading/job-errors.ts";
import type { Db } from "../store/db.ts";
import type { Forgetting } from "../store/forgetting.ts";
import { CharactersUnderWay } from "./characters-under-way.ts";
import type { VaultDocument } from "./document.ts";
import type { IndexLocation, Metadata, SearchAnswer, SearchRequest, VectorQuestion } from "./messages.ts";
import { openRows } from "./open-rows.ts";
import type { Commit, DocumentChange, VaultParts } from "./parts.ts";
import { repeatIfRaced } from "./raced.ts";
import { DocumentReading } from "./reading/reading.ts";
import { findDocument, findScope, hideDocument, listDocuments, readText } from "./rows/documents.ts";
import { openHashes } from "./rows/hashes.ts";
import { listScopes, type VaultScope } from "./rows/scopes.ts";
import { type Space, Spaces } from "./rows/spaces.ts";
import { LEXICAL_DIMENSIONS, LEXICAL_SPACE } from "./terms/lexical.ts";
import { Filler } from "./upkeep/backfill.ts";
import { Compactor } from "./upkeep/compactor.ts";
import { Remover } from "./upkeep/remover.ts";
import { SharedUpkeep } from "./upkeep/shared-upkeep.ts";
import { Tidier } from "./upkeep/tidier.ts";
import { ownUpkeep } from "./upkeep/upkeep.ts";
import { WorkerThreads } from "./worker-threads.ts";
import { type DescribeWrite, type WriteRequest, type WriteResult, writeDocument } from "./write.ts";

const SEARCH_MS = 30_000;
const MERGE_MS = 60_000;
/** More would only take the main thread's processor time, except on large machines. */
const SEARCH_THREADS = 2;
/** Number of searches sent to a thread at a time: enough that it never pauses between two of them. */
const SEARCHES_AT_ONCE = 2;
const SEARCHES_WAITING = { perWorkspace: 500, total: 4_000 };
const MERGES_WAITING = { perWorkspace: 1_000, total: 10_000 };
/** How long a search waits for its question's vector. If it does not arrive, only words are searched. */
const QUERY_MS = 2_000;
/** A thread that has read many documents retains about 40 MB. A searching thread has the index in memory. */
const IDLE_MS = 5_000;
const SEARCHER_IDLE_MS = 600_000;
/** Enough memory for the index of about 150,000 passages. */
const SEARCH_CACHE_BYTES = 96 * 1024 * 1024;
/** Where a model's vectors are searched in copies as well: 100,000 of them with 384 numbers each take 40 MB. */
const WITH_COPIES_BYTES = 2 * SEARCH_CACHE_BYTES;
const MERGE_CACHE_BYTES = 8 * 1024 * 1024;

export interface VaultOptions {
  readonly db: Db;
  /** This process among those that share the store. */
  readonly nodes: Nodes;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  readonly random: RandomSource;
  /** MUST be stopped after the vault. */
  readonly forgetting: Forgetting;
  /** Where the workers read the index, on connections of their own. */
  readonly index: IndexLocation;
  /** The workers' program: `worker.ts` next to this file, as it can be located at run time. */
  readonly program: URL;
  /** The program's entry, which starts reading processes. */
  readonly main: URL;
  readonly reading: VaultSettings;
  readonly embedder: Embedder | null;
  /**
   * Returns a previously configured model, as long as its vectors are searched. Null if its provider is no longer
   * configured.
   */
  readonly formerEmbedder: (model: string) => Promise<Embedder | null>;
}

export type SearchOptions = Omit<SearchRequest, "vectors" | "filter"> & {
  /** Names and values that a document's metadata MUST have, all of them. */
  readonly filter: Metadata;
};

export interface ListFilter {
  readonly sourceUri?: string | undefined;
}

/** A workspace's documents: written, searched and removed inside boundaries. */
export interface Vault {
  /** Emits each written or deleted document, once that is on disk. */
  readonly changed: Signal<DocumentChange>;
  /** Removes what an earlier process left unfinished, and starts filling in vectors. */
  start(): Promise<void>;
  /** Ends the workers. Resolves when nothing is being written. */
  stop(): Promise<void>;
  /**
   * `signal`: aborted when the caller has disconnected. A search that is still waiting by then is not run.
   * @throws Problem 429 `queue_full` if too many searches are waiting
   */
  search(options: SearchOptions, signal?: AbortSignal): Promise<SearchAnswer>;
  /** @throws see `writeDocument` */
  write(request: WriteRequest, commit: Commit, announce: DescribeWrite): Promise<WriteResult>;
  /** @throws Problem 404 `not_found`, also for a document outside the boundary */
  find(workspaceId: number, boundary: Boundary, id: string): Promise<VaultDocument>;
  /** A document's text, or its range from `start` to before `end`. */
  text(document: VaultDocument, start?: number, end?: number): Promise<string>;
  list(
    workspaceId: number,
    boundary: Boundary,
    filter: ListFilter,
    limit: number,
    before: string | undefined,
  ): Promise<VaultDocument[]>;
  /**
   * Scopes inside the boundary that contain documents, by path, after the path `after`. Returns one more than `limit`
   * if there are more.
   */
  scopes(
    workspaceId: number,
    boundary: Boundary,
    limit: number,
    after: string | undefined,
  ): Promise<VaultScope[]>;
  /**
   * Hides a document in one transaction with the call's evidence, then removes it from every file of the store.
   * @throws Problem 404 `not_found`
   */
  remove(workspaceId: number, boundary: Boundary, id: string, commit: Commit): Promise<void>;
}

export async function openVault(options: VaultOptions): Promise<Vault> {
  const { db, nodes, clock, ids, log, forgetting, embedder, index, program, main } = options;
  const changed = new Signal<DocumentChange>();
  const { vectors, claims, keys, spaceLocks } = await openRows(db, index, nodes);
  const spaces = new Spaces({ db, clock, vectors, locks: spaceLocks });
  const hashes = await openHashes(db, options.random);
  const setup = { index };
  const searcher = new WorkerThreads({
    program,
    setup,
    threads: SEARCH_THREADS,
    cacheBytes: vectors.segments && embedder ? WITH_COPIES_BYTES : SEARCH_CACHE_BYTES,
    timeoutMs: SEARCH_MS,
    atOnce: SEARCHES_AT_ONCE,
    waiting: SEARCHES_WAITING,
    idleMs: SEARCHER_IDLE_MS,
  });
  const reading = new DocumentReading({ limits: options.reading, main, worker: program, log });
  const merger = new WorkerThreads({
    program,
    setup,
    threads: 1,
    cacheBytes: MERGE_CACHE_BYTES,
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
    vectors,
    claims,
    hashes,
    embedder,
    locks: new Locks(),
    changed,
    searcher,
    reading,
    merger,
  };
  const configured = await spaces.open(embedder?.space ?? LEXICAL_SPACE, embedder ? 0 : LEXICAL_DIMENSIONS);
  const former = await formerOf(spaces.active);
  const compactor = new Compactor(parts);
  const tidier = new Tidier(parts);
  const remover = new Remover(parts, (scopeId, passages) => tidier.freed(scopeId, passages));
  // Copies of new vectors are merged like other segments.
  const added = (workspaceId: number, scopeId: number) => upkeep.added(workspaceId, scopeId);
  const filler = new Filler(parts, embedderOf, vectors.segments ? added : undefined);
  const upkeepParts = { remover, compactor, filler };
  const upkeep = nodes.isShared
    ? new SharedUpkeep({ ...upkeepParts, nodes, spaces, configured, log })
    : ownUpkeep(upkeepParts);
  const underWay = new CharactersUnderWay();
  const writeParts = { ...parts, remover, filler, keys, waits: upkeep.waits.bind(upkeep) };

  /** While another model's space is being filled, the old model still answers if it is available. */
  async function formerOf(space: Space | undefined): Promise<Embedder | null> {
    if (!space || space.name === LEXICAL_SPACE || space.name === embedder?.space) return null;
    const made = await options.formerEmbedder(space.name.slice(0, space.name.indexOf("|")));
    return made?.space === space.name ? made : null;
  }

  function embedderOf({ name }: Space): Embedder | null {
    return [embedder, former].find((each) => each?.space === name) ?? null;
  }

  async function find(workspaceId: number, boundary: Boundary, id: string): Promise<VaultDocument> {
    // The scope is checked first: counting the missing vectors of a document outside the boundary would take time
    // that reveals its existence.
    const scope = isId("doc", id) ? await findScope(db, workspaceId, id) : undefined;
    if (scope === undefined || !isInside(boundary, scope)) throw notThere(id);
    const document = await findDocument(db, workspaceId, spaces.active?.id ?? 0, id);
    // It may have been moved in the meantime.
    if (!document || !isInside(boundary, document.scope)) throw notThere(id);
    return document;
  }

  /** Null if vectors cannot be searched now. Words still are. */
  async function vectorsFor({ workspaceId, query }: SearchOptions): Promise<VectorQuestion | null> {
    const space = await spaces.searched();
    if (!space || space.dimensions === 0 || !spaces.isAvailable) return null;
    if (space.name === LEXICAL_SPACE) return { space: space.id, vector: null };
    const asked = embedderOf(space);
    // The model that filled this space is no longer configured, and the new model's space is not full yet.
    if (asked === null) return null;
    if (filler.isResting(space)) return null;
    const tooLong = new AbortController();
    const cancel = clock.after(QUERY_MS, () => tooLong.abort());
    try {
      const [vector] = await asked.embed([query], "query", { workspaceId, signal: tooLong.signal });
      filler.recovered(space);
      if (vector?.length === space.dimensions) return { space: space.id, vector };
      log.error("the embedding model has changed; only words are searched", { model: asked.model });
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
    changed,
    start: () => upkeep.start(),
    async stop() {
      await upkeep.stop();
      await tidier.stop();
      await Promise.all([searcher.stop(), merger.stop()]);
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
      upkeep.added(request.workspaceId, written.document.scopeId);
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
      const removed = await repeatIfRaced(() =>
        parts.locks.run(workspaceId, async () => {
          const document = await find(workspaceId, boundary, id);
          const { key, scopeId, scope } = document;
          const change = await merger.do("without", { scopeId, document: key, space: null }, { workspaceId });
          await commit(async (tx, now) => {
            if (!isInside(now, scope)) throw notThere(id);
            tx.onCommit(() => changed.emit({ workspaceId, id, scope, change: "deleted" }));
            await hideDocument(tx, key, change, scopeId);
            claims.add(tx, key);
          });
          return document;
        }),
      );
      await remover.remove({ ...removed, workspaceId });
      await forgetting.forget();
    },
  };
}

function notThere(id: string): Problem {
  return new Problem("not_found", `There is no document ${JSON.stringify(id)}.`);
}
