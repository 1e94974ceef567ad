import { cpus } from "node:os";
import { type Cluster, startCluster } from "../../../test/support/postgres/cluster.ts";
import { findPostgres } from "../../../test/support/postgres/programs.ts";
import { Skipped } from "../report.ts";
import type { Workshop } from "../workshop.ts";

/** PostgreSQL's own defaults, where the tests' differ. A call is answered when its entry is on disk. */
const DURABLE = ["fsync = on", "full_page_writes = on", "synchronous_commit = on", "shared_buffers = 128MB"];

/**
 * Starts a PostgreSQL of the benchmark's own, and notes what it shares the machine with.
 * @throws Skipped if this machine has none
 */
export async function startPostgres(workshop: Workshop): Promise<Cluster> {
  if (process.platform !== "linux" || findPostgres() === undefined) {
    throw new Skipped("there is no PostgreSQL 15 or later: apt-get install postgresql");
  }
  workshop.note(sharedCores(cpus().length));
  return startCluster(DURABLE);
}

/** What the rates of several servers on one machine can show. */
function sharedCores(cores: number): string {
  const shared = `Servers, PostgreSQL and the load share ${cores === 1 ? "one core" : `${cores} cores`}`;
  const limit =
    cores <= 2
      ? "so rates cannot rise with the number of servers"
      : "so rates rise with the number of servers only while cores are idle";
  return `${shared}, ${limit}: what counts is the work of a core.`;
}
