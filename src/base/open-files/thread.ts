import { closeSync, fstatSync, openSync } from "node:fs";
import { devNull } from "node:os";
import { isOutOfOpenFiles, openFilesReserve } from "./reserve.ts";

/** What a thread's event loop opens (an epoll and an eventfd with Bun 1.4.5). Without them Bun ends the whole process. */
const EVENT_LOOP = 2;
/** What a thread opens soon afterwards: its program, and a database with its log. Without them it fails, and only it. */
const PER_THREAD = 16;
/** How long the event loop may take to come up. It takes about 1 ms; only a machine that stands still takes longer. */
const START_MS = 5_000;
const NAP_MS = 0.2;

/** The process has no descriptors left for what was to be opened. It may have some soon. */
export class OutOfOpenFiles extends Error {
  override readonly name = "OutOfOpenFiles";
}

/**
 * Starts a thread, with descriptors from the reserve. Bun ends the process if a thread that starts finds none, and only
 * this thread accepts connections: it waits here until the new thread has its own, so no connection can take them.
 *
 * @throws OutOfOpenFiles if few are left: the thread would start, and then fail
 */
export function startThread(program: URL): Worker {
  if (!openFilesReserve.hasRoom(PER_THREAD)) throw noneLeft();
  return openFilesReserve.lend(EVENT_LOOP, () => {
    const next = nextDescriptors(EVENT_LOOP);
    const worker = new Worker(program);
    waitUntilOpen(next);
    return worker;
  });
}

/** The numbers that the next descriptors of this process will get: the system always gives the lowest. */
function nextDescriptors(count: number): readonly number[] {
  const opened: number[] = [];
  try {
    while (opened.length < count) opened.push(openSync(devNull, "r"));
  } catch (error) {
    throw isOutOfOpenFiles(error) ? noneLeft() : error;
  } finally {
    for (const descriptor of opened) closeSync(descriptor);
  }
  return opened;
}

function noneLeft(): OutOfOpenFiles {
  return new OutOfOpenFiles("no descriptors are left for a thread");
}

function waitUntilOpen(descriptors: readonly number[]): void {
  const nobody = new Int32Array(new SharedArrayBuffer(4));
  const deadline = performance.now() + START_MS;
  while (!descriptors.every(isOpen) && performance.now() < deadline) Atomics.wait(nobody, 0, 0, NAP_MS);
}

function isOpen(descriptor: number): boolean {
  try {
    fstatSync(descriptor);
    return true;
  } catch {
    return false;
  }
}

/**
 * Starts the thread that Bun's `fetch` works in, which opens descriptors of its own at the first request of a process. The
 * request leads nowhere.
 */
export async function startFetchThread(): Promise<void> {
  try {
    await fetch("http://localhost/", { unix: devNull });
  } catch {
    // It always fails: nobody listens there.
  }
}
