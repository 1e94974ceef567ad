import { closeSync, openSync, readlinkSync } from "node:fs";
import { devNull } from "node:os";
import { isOutOfOpenFiles, openFilesReserve } from "./reserve.ts";

/** What a thread opens soon after its start: its program, and a database with its log. Without them it fails, and only it. */
const PER_THREAD = 16;
/**
 * What a thread's event loop opens at once with Bun 1.4.5, as Linux names it. Without them Bun ends the whole process.
 */
const EVENT_LOOP = ["anon_inode:[eventpoll]", "anon_inode:[eventfd]"];
/** Other threads open a file for a moment, now and then, and may take a number that the event loop would have had. */
const NUMBERS = 8;
/** How long the event loop may take to come up. It takes about 1 ms; only a machine that stands still takes longer. */
const START_MS = 1_000;
const NAP_MS = 0.2;

/** The process has no descriptors left for what was to be opened. It may have some soon. */
export class OutOfOpenFiles extends Error {
  override readonly name = "OutOfOpenFiles";
}

/**
 * Starts a thread, with descriptors from the reserve. Bun ends the process if a thread that starts finds none, and only
 * this thread accepts connections: it waits here until the new thread has its own, so no connection can take them. On
 * systems without `/proc` it does not wait.
 *
 * @throws OutOfOpenFiles if few are left: the thread would start, and then fail
 */
export function startThread(program: URL): Worker {
  if (!openFilesReserve.hasRoom(PER_THREAD)) throw noneLeft();
  return openFilesReserve.lend(NUMBERS, () => {
    const next = nextDescriptors(NUMBERS);
    const worker = new Worker(program);
    waitForEventLoop(next);
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

function waitForEventLoop(descriptors: readonly number[]): void {
  if (process.platform !== "linux") return;
  const nobody = new Int32Array(new SharedArrayBuffer(4));
  const deadline = performance.now() + START_MS;
  for (;;) {
    const opened = new Set(descriptors.map(nameOf));
    if (EVENT_LOOP.every((name) => opened.has(name)) || performance.now() > deadline) return;
    Atomics.wait(nobody, 0, 0, NAP_MS);
  }
}

/** What the system calls an open descriptor; null if there is none of this number. */
function nameOf(descriptor: number): string | null {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`);
  } catch {
    return null;
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
