import { PostgresIndex } from "./index-postgres.ts";
import { SqliteIndex } from "./index-sqlite.ts";
import { type IndexStore, IndexUnreadable } from "./index-store.ts";
import {
  type CacheMessage,
  type IndexLocation,
  type JobFailure,
  type JobMessage,
  type JobName,
  type JobOutcome,
  type JobReply,
  LEAVE,
  type PreparedDocument,
  type VaultJobs,
  type WorkerSetup,
} from "./messages.ts";
import { prepareDocument } from "./prepare/prepare.ts";
import { UnreadableDocument } from "./read/read.ts";
import { search } from "./search/search.ts";
import { type LiveSegment, lexicalVectors, nextMerge, withoutDocument } from "./segments/plan-merge.ts";
import { SegmentCache } from "./segments/segment-cache.ts";

/**
 * A vault worker: a thread with its own read connection, so that neither searches nor long documents block the main
 * thread. The first message sets it up; every further message is a job.
 */
declare const self: Worker;

interface OpenIndex {
  readonly store: IndexStore;
  readonly cache: SegmentCache;
}

let index: OpenIndex | null = null;
/** Settled once the jobs received so far are done: the next one begins only then. */
let done: Promise<void> = Promise.resolve();

self.onmessage = (first: MessageEvent<WorkerSetup>) => {
  const setup = first.data;
  self.onmessage = ({ data }: MessageEvent<JobMessage | CacheMessage | typeof LEAVE>) => {
    if (data === LEAVE) void leave();
    else if (data.job === "cache") index?.cache.change(data.update);
    else done = done.then(() => answer(data, setup));
  };
};

async function leave(): Promise<void> {
  await index?.store.close();
  index = null;
  self.postMessage(LEAVE);
}

async function answer(message: JobMessage, setup: WorkerSetup): Promise<void> {
  let outcome: JobOutcome;
  try {
    outcome = { ok: true, answer: await run(() => open(setup), message) };
  } catch (error) {
    outcome = { ok: false, failure: failureOf(error) };
  }
  if (message.job === "search") tidyUp();
  const reply: JobReply = { id: message.id, ...outcome, cache: index?.cache.report() ?? null };
  self.postMessage(reply, outcome.ok ? buffersOf(message.job, outcome.answer) : []);
}

/**
 * Cached segments raise the threshold for the engine's next garbage collection: with 70 MB of them, many searches
 * took 340 MB without this and 220 MB with it, at the cost of 5 to 9% of a search's time. Small indexes are not
 * affected. Each of the two searching threads counts the shared segments as its own, and does half of the searches.
 */
const COLLECT_EVERY = 128;
const COLLECT_ABOVE_BYTES = 32 * 1024 * 1024;
let sinceCollected = 0;

function tidyUp(): void {
  if (++sinceCollected < COLLECT_EVERY || (index?.cache.byteLength ?? 0) < COLLECT_ABOVE_BYTES) return;
  sinceCollected = 0;
  Bun.gc(false);
}

/** Buffers to transfer instead of copying: on the order of a hundred megabytes for a long document. */
function buffersOf(job: JobName, given: unknown): ArrayBuffer[] {
  if (job !== "prepare") return [];
  const { vectors, segments } = given as PreparedDocument;
  return [vectors, ...segments.map(({ bytes }) => bytes)].flatMap(({ buffer }) =>
    buffer instanceof ArrayBuffer ? buffer : [],
  );
}

/** On demand: a worker that prepares documents needs no index. */
function open({ index: location }: WorkerSetup): OpenIndex {
  if (!location) throw new Error("this worker has no index");
  index ??= openIndex(location, new SegmentCache());
  return index;
}

function openIndex(location: IndexLocation, cache: SegmentCache): OpenIndex {
  const store =
    location.engine === "sqlite"
      ? new SqliteIndex(location.database, location.extension)
      : new PostgresIndex(location, cache);
  return { store, cache };
}

type JobResult = VaultJobs[JobName]["answer"];

function run(opened: () => OpenIndex, { job, request }: JobMessage): Promise<JobResult> | JobResult {
  switch (job) {
    case "search":
      return search(opened().store, opened().cache, request);
    case "prepare":
      return prepareDocument(request);
    case "without":
      return onLive(opened(), request, (live) => withoutDocument(live, request.document));
    case "compact":
      return onLive(opened(), request, (live) => nextMerge(live, request.isQuiet));
    case "vectors":
      return onLive(opened(), { ...request, space: null }, (live) => lexicalVectors(live, request.keys));
  }
}

/** Runs `work` on the live segments of a scope, or on those with copies of a space's vectors. */
function onLive<Result>(
  { store, cache }: OpenIndex,
  { scopeId, space }: { readonly scopeId: number; readonly space: number | null },
  work: (live: readonly LiveSegment[]) => Result,
): Promise<Result> {
  return store.read(async (state) => {
    const ids = (await state.segments({ scopeId, space })).map(({ id }) => id);
    const segments = await cache.load(state, ids);
    return work(segments.map((segment, at) => ({ id: ids[at] as number, segment })));
  });
}

function failureOf(error: unknown): JobFailure {
  if (error instanceof UnreadableDocument)
    return { message: error.message, field: error.field, isStore: false };
  if (error instanceof IndexUnreadable) return { message: error.message, field: null, isStore: true };
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { message, field: null, isStore: false };
}
