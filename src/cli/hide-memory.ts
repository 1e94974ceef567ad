import { dlopen } from "bun:ffi";

/** prctl(2): whether the process may be dumped, and so read by others that run as its user. */
const PR_SET_DUMPABLE = 4;
/** The C library under the names that glibc and musl give it. */
const LIBRARIES = ["libc.so.6", `libc.musl-${process.arch === "arm64" ? "aarch64" : "x86_64"}.so.1`];
const PRCTL = { prctl: { args: ["int", "u64", "u64", "u64", "u64"], returns: "int" } } as const;

/**
 * Closes this process's memory and environment (`/proc/<pid>/mem`, `/proc/<pid>/environ`, ptrace, core dumps) to other processes of
 * its own user, on Linux. They hold keys and tokens, and programs that connectors start run as that user unless it is root. Files
 * stay readable to them: no system call changes that. Children are not affected.
 * @returns whether it did; always false on other systems
 */
export function hideMemory(): boolean {
  if (process.platform !== "linux") return false;
  for (const name of LIBRARIES) {
    try {
      const library = dlopen(name, PRCTL);
      const result = library.symbols.prctl(PR_SET_DUMPABLE, 0n, 0n, 0n, 0n);
      library.close();
      return result === 0;
    } catch {
      // The other C library's name is tried next; without either, the caller is told.
    }
  }
  return false;
}
