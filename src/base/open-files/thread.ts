import { closeSync, openSync, readlinkSync } from "node:fs";
import { devNull } from "node:os";
import { isOutOfOpenFiles, openFilesReserve } from "./reserve.ts";

/**
 * The descriptors that a thread opens soon after its start: its program, and a database with its log. Without them,
 * only the thread fails.
 */
const PER_THREAD = 16;
/**
 * The descriptors that a thread's event loop opens immediately with Bun 1.4.5, as named by Linux. Without them, Bun
 * ends the whole process.
 */
const EVENT_LOOP = ["anon_inode:[eventpoll]", "anon_inode:[eventfd]"];
/**
 * The number of descriptors checked. Other threads sometimes open a file for a moment and may take a number that the
 * event loop would have got.
 */
const NUMBERS = 8;
/** How long to wait for the event loop, which starts in about 1 ms. Only a stalled machine takes longer. */
const START_MS = 1_000;
const NAP_MS = 0.2;

/** The process has no descriptors left for this. It may have some soon. */
export class OutOfOpenFiles extends Error {
  override readonly name = "OutOfOpenFiles";
}

/**
 * Starts a thread with descriptors from the reserve. Bun ends the process if a starting thread finds none. Only this
 * thread accepts connections, so it blocks here until the new thread has its descriptors, and no connection can take
 * them. Does not wait on systems without `/proc`.
 *
 * @throws OutOfOpenFiles if few are left: the thread would start and then fail
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

/** The numbers of the next descriptors that this process opens: the system always assigns the lowest. */
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

/** The system's name of an open descriptor; null if there is no such descriptor. */
function nameOf(descriptor: number): string | null {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`);
  } catch {
    return null;
  }
}

/**
 * Starts the thread of Bun's `fetch`, which opens descriptors of its own at a process's first request. The request
 * goes nowhere.
 */
export async function startFetchThread(): Promise<void> {
  try {
    await fetch("http://localhost/", { unix: devNull });
  } catch {
    // Always fails: nothing listens there.
  }
}
