import { type Cluster, startCluster } from "../../test/support/postgres/cluster.ts";
import { SERVER } from "../../test/support/postgres/database.ts";
import { findPostgres } from "../../test/support/postgres/programs.ts";
import { missingClocks } from "../soaking/nodes/wrong-clocks.ts";
import { provide } from "./apt.ts";

/**
 * Starts one PostgreSQL for all tests of a run, unless the environment names one. See `provide` for what is installed.
 * @returns the server, undefined if it is another's, or why there is none
 */
export async function preparePostgres(
  say: (text: string) => void,
  inCi: boolean,
): Promise<Cluster | string | undefined> {
  if (process.env[SERVER]) return undefined;
  const missing = await provide(["postgresql"], whatIsMissing, say, inCi);
  if (missing !== undefined) return missing;
  const apart = await provide(["nginx", "pgbouncer", "libfaketime"], whatIsMissingBeside, say, inCi);
  if (apart !== undefined) say(`some tests of several servers SKIPPED: ${apart}`);
  const cluster = await startCluster();
  process.env[SERVER] = cluster.url;
  return cluster;
}

function whatIsMissing(): string | undefined {
  return findPostgres() === undefined ? "there is no PostgreSQL 15 or later" : undefined;
}

/** What stands between clients and servers, or between servers and the database, and what makes their clocks wrong. */
function whatIsMissingBeside(): string | undefined {
  const missing = ["nginx", "pgbouncer"].filter(
    (name) => Bun.which(name, { PATH: `${process.env.PATH}:/usr/sbin` }) === null,
  );
  if (missingClocks() !== undefined) missing.push("libfaketime");
  return missing.length === 0 ? undefined : `there is no ${missing.join(" and no ")}`;
}
