import { dlopen, FFIType, ptr } from "bun:ffi";
import { openSync, readFileSync, readSync } from "node:fs";

/** How often a process that reads looks at the memory that it takes: an allocating loop takes some 15 MB in between. */
const LOOK_MS = 10;
/** Resources of `setrlimit` on Linux. */
const DATA = 2;
const CORE = 4;
const OPEN_FILES = 7;
/** More than `/proc/self/status` ever has before the line that is read. */
const STATUS_BYTES = 4_096;

/** Bytes of memory that this process takes now. */
export type OwnMemory = () => number;

/**
 * A function that tells the memory of this process without opening anything, so that it still works when nothing may be
 * opened any more.
 */
export function openOwnMemory(): OwnMemory {
  if (process.platform !== "linux") return () => process.memoryUsage.rss();
  const file = openSync("/proc/self/status", "r");
  const bytes = Buffer.alloc(STATUS_BYTES);
  return () => bytesOf("VmRSS", bytes.toString("latin1", 0, readSync(file, bytes, 0, STATUS_BYTES, 0)));
}

/**
 * Has the kernel refuse this process memory far past the ceiling, every file and socket that it does not have open, and a core
 * file. For memory it is the last line: `watchMemory` ends the process first, but for that it has to be given a moment of the
 * processor. Only on Linux with glibc; the kernel counts address space, of which the engine takes a gigabyte at a time.
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

/** Calls `over` as soon as this process takes more memory than `ceiling`. @returns a function that ends the watch */
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

/** Null where the system has another library of C. */
function openLibrary() {
  try {
    return dlopen("libc.so.6", {
      setrlimit: { args: [FFIType.i32, FFIType.ptr], returns: FFIType.i32 },
    });
  } catch {
    return null;
  }
}
