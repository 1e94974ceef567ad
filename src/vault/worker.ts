import { IndexReader } from "./index-reader.ts";
import {
  type JobFailure,
  type JobMessage,
  type JobName,
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
  self.onmessage = (message: MessageEvent<JobMessage | typeof LEAVE>) => {
    if (message.data !== LEAVE) return void answer(message.data, setup);
    index?.close();
    index = null;
    self.postMessage(LEAVE);
  };
};

async function answer(message: JobMessage, setup: WorkerSetup): Promise<void> {
  const { id } = message;
  let reply: JobReply;
  try {
    reply = { id, ok: true, answer: await run(() => open(setup), message) };
  } catch (error) {
    reply = { id, ok: false, failure: failureOf(error) };
  }
  if (message.job === "search") tidyUp();
  self.postMessage(reply, reply.ok ? buffersOf(message.job, reply.answer) : []);
}

/**
 * Cached segments raise the threshold for the engine's next garbage collection: with 70 MB of them, many searches
 * took 340 MB without this and 220 MB with it, at the cost of 5 to 9% of a search's time. Small indexes are not
 * affected.
 */
const COLLECT_EVERY = 256;
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
  index ??= new IndexReader(setup.database, setup.extension, setup.cacheBytes);
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
