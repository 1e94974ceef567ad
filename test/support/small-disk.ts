/**
 * A disk that a test can fill: a separate file system in memory, or, failing that, a limit on the size of a process's
 * files.
 */
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface SmallDisk {
  readonly path: string;
  /** From now on, nothing more can be written, either by anyone or by this process. */
  fill(pid?: number): void;
  free(pid?: number): void;
  remove(): void;
}

const SIZE = "24m";

/** @throws Error if this machine supports neither method, so nothing can be tested */
export function smallDisk(): SmallDisk {
  const path = mkdtempSync(join(tmpdir(), "gatehouse-small-disk-"));
  if (succeeds(["mount", "-t", "tmpfs", "-o", `size=${SIZE},mode=700`, "tmpfs", path])) return mounted(path);
  console.warn(
    "SMALL DISK: no file system can be mounted here (that takes root): files are limited in size instead. The store " +
      "is told EFBIG (SQLITE_IOERR_WRITE) in place of ENOSPC (SQLITE_FULL).",
  );
  return limited(path);
}

function mounted(path: string): SmallDisk {
  const filler = join(path, "filler");
  return {
    path,
    fill() {
      const file = openSync(filler, "w");
      try {
        for (let size = 1 << 20; size > 0; size >>= 1) fillWith(file, new Uint8Array(size));
      } finally {
        closeSync(file);
      }
    },
    free: () => rmSync(filler, { force: true }),
    remove() {
      if (!succeeds(["umount", path]) && !succeeds(["umount", "--lazy", path])) {
        throw new Error(`${path} cannot be unmounted`);
      }
      rmSync(path, { recursive: true });
    },
  };
}

/** Writes the bytes until the disk is full. */
function fillWith(file: number, bytes: Uint8Array): void {
  try {
    for (;;) writeSync(file, bytes);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ENOSPC")) throw error;
  }
}

function limited(path: string): SmallDisk {
  const limit = (pid: number, bytes: string) => {
    if (!succeeds(["prlimit", "--pid", String(pid), `--fsize=${bytes}:unlimited`])) {
      throw new Error("the size of files cannot be limited (prlimit): no full disk can be made here");
    }
  };
  return {
    path,
    // No file accepts a single byte. Pipes do, so this process can still report its findings.
    fill: (pid = process.pid) => limit(pid, "0"),
    free: (pid = process.pid) => limit(pid, "unlimited"),
    remove: () => rmSync(path, { recursive: true }),
  };
}

function succeeds(command: readonly string[]): boolean {
  const program = Bun.which(command[0] ?? "");
  return program !== null && Bun.spawnSync([program, ...command.slice(1)]).exitCode === 0;
}
