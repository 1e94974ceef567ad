import { serveReading } from "../../reading/process.ts";
import type { ReadingFailure } from "../../reading/protocol.ts";
import type { JobReply, PreparedDocument, PrepareRequest, WorkerSetup } from "../messages.ts";
import { encodeAnswer } from "./answer.ts";
import { decodeRequest } from "./request.ts";

const SETUP: WorkerSetup = { index: null };
/** Not a valid PDF file, but enough to load the PDF reader. */
const FIRST = Buffer.from("%PDF-1.4").toString("base64");

/**
 * Runs a process that reads documents for the vault. `program`: the program of the vault's threads. `ceiling`: the
 * maximum bytes of memory.
 */
export async function readDocuments(program: URL, ceiling: number): Promise<void> {
  const worker = new ReadingWorker(program);
  await serveReading(
    {
      // Loads all of the reader's modules in advance (the PDF reader with its first document), so their memory does
      // not count against a document.
      async load() {
        const content = { kind: "base64", data: FIRST, type: "application/pdf" } as const;
        await worker.read({ document: 0, title: "", content });
      },
      read: (request: PrepareRequest) => worker.read(request),
      decodeRequest,
      encodeAnswer,
    },
    ceiling,
  );
}

/** The thread that reads documents. An error outside a job ends the process. */
class ReadingWorker {
  readonly #worker: Worker;

  constructor(program: URL) {
    this.#worker = new Worker(program);
    this.#worker.postMessage(SETUP);
  }

  read(request: PrepareRequest): Promise<PreparedDocument | ReadingFailure> {
    return new Promise((resolve) => {
      this.#worker.onmessage = ({ data }: MessageEvent<JobReply>) =>
        resolve(data.ok ? (data.answer as PreparedDocument) : { ...data.failure, isOverLimit: false });
      this.#worker.postMessage({ id: 0, job: "prepare", request });
    });
  }
}
