import { spawnSync } from "node:child_process";
import type { Log } from "../../../base/log.ts";

/**
 * Makes this process, and everything that it starts, unable to create POSIX message queues: they outlive the processes
 * that created them, and cannot be found if `/dev/mqueue` is not mounted. Uses prlimit(1).
 */
export function refuseMessageQueues(log: Log): void {
  if (process.platform !== "linux") return;
  const { status } = spawnSync("prlimit", ["--pid", String(process.pid), "--msgqueue=0:0"], {
    stdio: "ignore",
  });
  if (status === 0) return;
  log.warn("connectors' programs may leave POSIX message queues behind, because prlimit is not installed");
}
