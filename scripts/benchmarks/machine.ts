import { cpus, loadavg, release } from "node:os";
import { join } from "node:path";
import { type Cores, separateCores } from "./processes/cores.ts";

const ROOT = join(import.meta.dir, "..", "..");

/** The machine that produced the figures, which mean nothing without it. */
export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  /** The core of the server under test, and that of the load and the upstream; null if this system cannot separate them. */
  readonly separate_cores: Cores | null;
  readonly system: string;
  readonly bun: string;
  /** The checkout's commit, with `-dirty` if files differ from it; `unknown` outside a clone. */
  readonly commit: string;
  /**
   * The average number of processes ready to run in the last minute. More than a few tenths means that something else
   * is running.
   */
  readonly load: number;
}

export function thisMachine(): Machine {
  const cores = cpus();
  return {
    cpu: cores[0]?.model.trim() || "unknown CPU",
    cores: cores.length,
    separate_cores: separateCores(),
    system: `${process.platform} ${release()} ${process.arch}`,
    bun: Bun.version,
    commit: commit(),
    load: Math.round((loadavg()[0] ?? 0) * 100) / 100,
  };
}

function commit(): string {
  const git = Bun.which("git");
  if (git === null) return "unknown";
  const described = Bun.spawnSync([git, "describe", "--always", "--dirty", "--exclude=*", "--abbrev=12"], {
    cwd: ROOT,
  });
  return described.stdout.toString().trim() || "unknown";
}
