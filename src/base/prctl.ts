import { dlopen } from "bun:ffi";

/** Options of prctl(2). */
export const PR_SET_DUMPABLE = 4;
export const PR_SET_NO_NEW_PRIVS = 38;

/** The C library as named by glibc and musl. */
const LIBRARIES = ["libc.so.6", `libc.musl-${process.arch === "arm64" ? "aarch64" : "x86_64"}.so.1`];
const SYMBOLS = { prctl: { args: ["int", "u64", "u64", "u64", "u64"], returns: "int" } } as const;

/**
 * Sets an option of this process or thread, as described in prctl(2).
 * @returns whether the system set it; always false on systems other than Linux
 */
export function prctl(option: number, value: bigint): boolean {
  if (process.platform !== "linux") return false;
  for (const name of LIBRARIES) {
    try {
      const library = dlopen(name, SYMBOLS);
      const result = library.symbols.prctl(option, value, 0n, 0n, 0n);
      library.close();
      return result === 0;
    } catch {
      // Try the C library's other name. Without either, the result is false.
    }
  }
  return false;
}
