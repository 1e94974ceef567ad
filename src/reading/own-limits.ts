import { dlopen, FFIType, ptr } from "bun:ffi";
import { openSync, readFileSync, readSync } from "node:fs";

/** How often a reading process checks its memory: a loop that allocates takes about 15 MB in between. */
const LOOK_MS = 10;
/** Linux resource numbers for `setrlimit`. */
const DATA = 2;
const CORE = 4;
const OPEN_FILES = 7;
/** More than `/proc/self/status` contains up to the line that is read. */
const STATUS_BYTES = 4_096;

/** Memory used by this process, in bytes. */
export type OwnMemory = () => number;

/**
 * Returns a function that measures this process's memory without opening files, so that it works once opening files
 * is forbidden.
 */
export function openOwnMemory(): OwnMemory {
  if (process.platform !== "linux") return () => process.memoryUsage.rss();
  const file = openSync("/proc/self/status", "r");
  const bytes = Buffer.alloc(STATUS_BYTES);
  return () => bytesOf("VmRSS", bytes.toString("latin1", 0, readSync(file, bytes, 0, STATUS_BYTES, 0)));
}

/**
 * Makes the kernel refuse memory far beyond the ceiling, further open files and sockets, and core files. For memory
 * this is the last resort: `watchMemory` ends the process first if it gets any processor time. Only on Linux with
 * glibc. The kernel counts address space, of which the engine reserves a gigabyte at a time.
 */
export function limitOwnResources(ceiling: number): void {
  if (process.platform !== "linux") return;
  const library = openLibrary();
  if (library === null) return;
  const taken = bytesOf("VmData", readFileSync("/proc/self/status", "latin1"));
  for (const [resource, most] of [
    [DATA, taken + ceiling],
    [CORE, 0],
    [OPEN_FILES, 0],
  ] as const) {
    const limit = new BigUint64Array([BigInt(most), BigInt(most)]);
    library.symbols.setrlimit(resource, ptr(limit));
  }
  library.close();
}

/** Calls `over` as soon as this process uses more memory than `ceiling`. @returns a function that stops watching */
export function watchMemory(memory: OwnMemory, ceiling: number, over: () => void): () => void {
  const timer = setInterval(() => {
    if (memory() > ceiling) over();
  }, LOOK_MS);
  return () => clearInterval(timer);
}

/** In bytes. */
function bytesOf(name: string, status: string): number {
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status)?.[1] ?? 0) * 1024;
}

/** Null if the system has a different C library. */
function openLibrary() {
  try {
    return dlopen("libc.so.6", {
      setrlimit: { args: [FFIType.i32, FFIType.ptr], returns: FFIType.i32 },
    });
  } catch {
    return null;
  }
}
