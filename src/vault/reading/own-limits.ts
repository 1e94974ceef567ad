import { dlopen, FFIType, ptr } from "bun:ffi";
import { readFileSync } from "node:fs";

/** How often a process that reads looks at the memory that it takes: an allocating loop takes some 15 MB in between. */
const LOOK_MS = 10;
/** `RLIMIT_DATA` and `RLIMIT_CORE` of Linux. */
const DATA = 2;
const CORE = 4;

/**
 * Has the kernel refuse this process memory far past the ceiling, and write no core file. It is the last line: `watchMemory`
 * ends the process first, but for that it has to be given a moment of the processor. Only on Linux with glibc; the kernel
 * counts address space, of which the engine takes a gigabyte at a time.
 */
export function limitOwnMemory(ceiling: number): void {
  const taken = dataBytes();
  if (taken === null) return;
  const library = openLibrary();
  if (library === null) return;
  for (const [resource, most] of [
    [DATA, taken + ceiling],
    [CORE, 0],
  ] as const) {
    const limit = new BigUint64Array([BigInt(most), BigInt(most)]);
    library.symbols.setrlimit(resource, ptr(limit));
  }
  library.close();
}

/** Calls `over` as soon as this process takes more memory than `ceiling`. @returns a function that ends the watch */
export function watchMemory(ceiling: number, over: () => void): () => void {
  const timer = setInterval(() => {
    if (process.memoryUsage.rss() > ceiling) over();
  }, LOOK_MS);
  return () => clearInterval(timer);
}

/** What counts for `RLIMIT_DATA` now; null where the system does not say. */
function dataBytes(): number | null {
  if (process.platform !== "linux") return null;
  const kilobytes = /^VmData:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1];
  return kilobytes === undefined ? null : Number(kilobytes) * 1024;
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
