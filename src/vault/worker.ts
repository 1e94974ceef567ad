import { IndexReader } from "./index-reader.ts";
import type {
  CompactRequest,
  JobFailure,
  JobMessage,
  JobName,
  JobReply,
  PrepareRequest,
  SearchRequest,
  VaultJobs,
  WithoutRequest,
  WorkerSetup,
} from "./messages.ts";
import { prepareDocument } from "./prepare/prepare.ts";
import { UnreadableDocument } from "./read/read.ts";
import { search } from "./search/search.ts";
import { nextMerge, withoutDocument } from "./segments/plan-merge.ts";

/**
 * A vault worker: a thread with a reading connection of its own, so that neither a search nor a long document holds up the
 * gate. Its first message says where the store is, each one after that is a job.
 */
declare const self: Worker;

let index: IndexReader | null = null;

self.onmessage = (first: MessageEvent<WorkerSetup>) => {
  const setup = first.data;
  self.onmessage = (message: MessageEvent<JobMessage>) => void answer(message.data, setup);
};

async function answer({ id, job, request }: JobMessage, setup: WorkerSetup): Promise<void> {
  let reply: JobReply;
  try {
    reply = { id, ok: true, answer: await run(() => open(setup), job, request) };
  } catch (error) {
    reply = { id, ok: false, failure: failureOf(error) };
  }
  self.postMessage(reply);
}

/** At the first job that reads it: a worker that prepares documents needs no database. */
function open(setup: WorkerSetup): IndexReader {
  index ??= new IndexReader(setup.database, setup.extension, setup.cacheBytes);
  return index;
}

function run(
  reader: () => IndexReader,
  job: JobName,
  request: unknown,
): Promise<VaultJobs[JobName]["answer"]> | VaultJobs[JobName]["answer"] {
  switch (job) {
    case "search":
      return search(reader(), request as SearchRequest);
    case "prepare":
      return prepareDocument(request as PrepareRequest);
    case "without": {
      const { scopeId, document } = request as WithoutRequest;
      return reader().snapshot(() => withoutDocument(reader(), scopeId, document));
    }
    case "compact": {
      const { scopeId, isQuiet } = request as CompactRequest;
      return reader().snapshot(() => nextMerge(reader(), scopeId, isQuiet));
    }
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
