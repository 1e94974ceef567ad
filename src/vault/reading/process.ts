import { writeSync } from "node:fs";
import type { JobReply, PreparedDocument, PrepareRequest, WorkerSetup } from "../messages.ts";
import { encodeAnswer, type ReadingFailure } from "./answer.ts";
import { FrameReader, frameHead, frameOf } from "./frames.ts";
import { limitOwnResources, openOwnMemory, watchMemory } from "./own-limits.ts";
import { decodeRequest } from "./request.ts";

const OUTPUT = 1;
/** Bytes of a request's frame: a document of 50 MiB, with room for what is known of it. */
const MOST_REQUEST = 64 * 1024 * 1024;
/** A process that has used up this part of its room reads no other document: each has nearly the same room. */
const USED_UP = 1 / 4;
const SETUP: WorkerSetup = { database: "", extension: null, cacheBytes: 0 };
/** No PDF file; but it takes the reader of PDF files to say so. */
const FIRST = Buffer.from("%PDF-1.4").toString("base64");
const OUT_OF_MEMORY = /^RangeError: Out of memory/;

/**
 * A process that reads documents, one after the other: requests on standard input, answers on standard output. The reading
 * is a worker's, so that this thread is free to notice that memory runs out or that the process that asked is gone. It ends
 * itself when it takes more memory than `ceiling` bytes, having said so, and when standard input ends.
 */
export async function readDocuments(program: URL, ceiling: number): Promise<void> {
  // A signal for the whole group, such as Ctrl-C, is for the server: it waits for what is being read.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});
  const worker = new ReadingWorker(program);
  // All of the reader's modules are loaded first, that of PDF files at its first document: what they take is not the document's,
  // and afterwards no file can be opened.
  await worker.read({
    document: 0,
    title: "",
    content: { kind: "base64", data: FIRST, type: "application/pdf" },
  });
  const out = Bun.stdout.writer();
  const input = Bun.stdin.stream().getReader();
  // Both open what they need with the first use.
  let next = input.read();
  const memory = openOwnMemory();
  limitOwnResources(ceiling);
  const atStart = memory();
  const reusedBelow = atStart + (ceiling - atStart) * USED_UP;
  // An empty frame: ready.
  out.write(frameHead(0));
  await out.flush();

  const frames = new FrameReader(MOST_REQUEST);
  let head: Uint8Array | null = null;
  for (let part = await next; !part.done; part = await next) {
    for (const body of frames.push(part.value)) {
      if (head === null) head = body;
      else {
        // The next request comes after this one's answer.
        void answer(decodeRequest(head, body));
        head = null;
      }
    }
    next = input.read();
  }
  end();

  async function answer(request: PrepareRequest): Promise<void> {
    const endWatch = watchMemory(memory, ceiling, () => {
      const [body = new Uint8Array()] = encodeAnswer({ result: overCeiling(ceiling), isLast: true });
      writeSync(OUTPUT, frameOf(body));
      end();
    });
    const result = await worker.read(request);
    endWatch();
    const isLast = memory() > reusedBelow;
    for (const body of encodeAnswer({ result: judged(result, ceiling), isLast })) {
      out.write(frameHead(body.length));
      out.write(body);
      await out.flush();
    }
    if (isLast) end();
  }
}

/** At once, also while the worker is in the middle of a document. */
function end(): void {
  process.kill(process.pid, "SIGKILL");
}

type Result = PreparedDocument | ReadingFailure;

/** The kernel may have refused memory before `watchMemory` has looked. */
function judged(result: Result, ceiling: number): Result {
  return "message" in result && OUT_OF_MEMORY.test(result.message) ? overCeiling(ceiling) : result;
}

function overCeiling(ceiling: number): ReadingFailure {
  const message = `takes more than ${Math.round(ceiling / 1024 / 1024)} MiB of memory`;
  return { message, field: null, isStore: false, isOverLimit: true };
}

/** The thread in which documents are read. Whatever it throws outside of a job ends the process. */
class ReadingWorker {
  readonly #worker: Worker;

  constructor(program: URL) {
    this.#worker = new Worker(program);
    this.#worker.postMessage(SETUP);
  }

  read(request: PrepareRequest): Promise<Result> {
    return new Promise((resolve) => {
      this.#worker.onmessage = ({ data }: MessageEvent<JobReply>) =>
        resolve(data.ok ? (data.answer as PreparedDocument) : { ...data.failure, isOverLimit: false });
      this.#worker.postMessage({ id: 0, job: "prepare", request });
    });
  }
}
