import { dlopen } from "bun:ffi";

/** prctl(2) option: whether the process is dumpable, and so readable by other processes of its user. */
const PR_SET_DUMPABLE = 4;
/** The C library's names in glibc and musl systems. */
const LIBRARIES = ["libc.so.6", `libc.musl-${process.arch === "arm64" ? "aarch64" : "x86_64"}.so.1`];
const PRCTL = { prctl: { args: ["int", "u64", "u64", "u64", "u64"], returns: "int" } } as const;

/**
 * Hides this process's memory and environment (`/proc/<pid>/mem`, `/proc/<pid>/environ`, ptrace, core dumps) from
 * other processes of its user, on Linux. They contain keys and tokens, and unless the server runs as root, programs
 * started by connectors run as the same user. Files stay readable to them: no system call prevents that. Child
 * processes are not affected.
 * @returns whether it succeeded; always false on other systems
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
      // Try the name in the other C library. If neither exists, the caller is told.
    }
  }
  return false;
}
