import { IndexReader } from "./index-reader.ts";
import {
  type CacheMessage,
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
import { lexicalVectors, nextMerge, withoutDocument } from "./segments/plan-merge.ts";

/**
 * A vault worker: a thread with its own read connection, so that neither searches nor long documents block the main
 * thread. The first message sets it up; every further message is a job.
 */
declare const self: Worker;

let index: IndexReader | null = null;

self.onmessage = (first: MessageEvent<WorkerSetup>) => {
  const setup = first.data;
  self.onmessage = ({ data }: MessageEvent<JobMessage | CacheMessage | typeof LEAVE>) => {
    if (data === LEAVE) leave();
    else if (data.job === "cache") index?.changeCache(data.update);
    else void answer(data, setup);
  };
};

function leave(): void {
  index?.close();
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
  const reply: JobReply = { id: message.id, ...outcome, cache: index?.cacheReport() ?? null };
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
  if (++sinceCollected < COLLECT_EVERY || (index?.segmentBytes ?? 0) < COLLECT_ABOVE_BYTES) return;
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

/** On demand: a worker that prepares documents needs no database. */
function open(setup: WorkerSetup): IndexReader {
  index ??= new IndexReader(setup.database, setup.extension);
  return index;
}

type JobResult = VaultJobs[JobName]["answer"];

function run(reader: () => IndexReader, { job, request }: JobMessage): Promise<JobResult> | JobResult {
  switch (job) {
    case "search":
      return search(reader(), request);
    case "prepare":
      return prepareDocument(request);
    case "without":
      return reader().snapshot(() => withoutDocument(reader(), request.scopeId, request.document));
    case "compact":
      return reader().snapshot(() => nextMerge(reader(), request.scopeId, request.isQuiet));
    case "vectors":
      return reader().snapshot(() => lexicalVectors(reader(), request.scopeId, request.keys));
  }
}

const STORE = /^SQLITE_(BUSY|LOCKED|IOERR|CORRUPT|NOTADB|CANTOPEN|NOMEM|PROTOCOL|FULL)/;

function failureOf(error: unknown): JobFailure {
  if (error instanceof UnreadableDocument)
    return { message: error.message, field: error.field, isStore: false };
  const code = error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { message, field: null, isStore: STORE.test(code) };
}
