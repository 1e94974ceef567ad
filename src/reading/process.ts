import { writeSync } from "node:fs";
import { FrameReader, frameHead, frameOf } from "./frames.ts";
import { limitOwnResources, openOwnMemory, watchMemory } from "./own-limits.ts";
import type { ReadingAnswer, ReadingFailure, ReadingService } from "./protocol.ts";

const OUTPUT = 1;
/** Maximum size in bytes of a request's frame: a document of 50 MiB and its metadata. */
const MOST_REQUEST = 64 * 1024 * 1024;
/**
 * A process that has used up this share of its memory reads no further document, so every document has nearly the
 * same memory.
 */
const USED_UP = 1 / 4;
const OUT_OF_MEMORY = /^RangeError: Out of memory/;

/**
 * Serves a process that reads documents one at a time: requests on standard input, answers on standard output.
 * It ends itself if it uses more than `ceiling` bytes of memory, after reporting that, and when standard input ends.
 */
export async function serveReading<Request, Result extends object>(
  service: ReadingService<Request, Result>,
  ceiling: number,
): Promise<void> {
  // A signal to the whole group, such as Ctrl-C, is meant for the server, which waits for documents being read.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});
  await service.load();
  const out = Bun.stdout.writer();
  const input = Bun.stdin.stream().getReader();
  // Both open their descriptors at the first use, before opening is forbidden.
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
        // The next request arrives only after this answer.
        void answer(service.decodeRequest(head, body));
        head = null;
      }
    }
    next = input.read();
  }
  end();

  async function answer(request: Request): Promise<void> {
    const endWatch = watchMemory(memory, ceiling, () => {
      const last = { failure: overCeiling(ceiling), isLast: true };
      for (const body of service.encodeAnswer(last)) writeSync(OUTPUT, frameOf(body));
      end();
    });
    const read = await service.read(request);
    endWatch();
    const isLast = memory() > reusedBelow;
    for (const body of service.encodeAnswer(answerOf(read, isLast, ceiling))) {
      out.write(frameHead(body.length));
      out.write(body);
      await out.flush();
    }
    if (isLast) end();
  }
}

/** Ends the process immediately, even while the thread is reading a document. */
function end(): void {
  process.kill(process.pid, "SIGKILL");
}

function answerOf<Result extends object>(
  read: Result | ReadingFailure,
  isLast: boolean,
  ceiling: number,
): ReadingAnswer<Result> {
  if (!isFailure(read)) return { result: read, isLast };
  // The kernel may have refused memory before `watchMemory` checked.
  return { failure: OUT_OF_MEMORY.test(read.message) ? overCeiling(ceiling) : read, isLast };
}

function isFailure(read: object): read is ReadingFailure {
  return "isOverLimit" in read;
}

function overCeiling(ceiling: number): ReadingFailure {
  const message = `takes more than ${Math.round(ceiling / 1024 / 1024)} MiB of memory`;
  return { message, field: null, isStore: false, isOverLimit: true };
}
