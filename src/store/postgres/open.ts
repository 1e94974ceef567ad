import type { Db, Sql, Tx } from "../db.ts";
import { RowSeals } from "../seals/seals.ts";
import { CommitMarks } from "./commit-marks.ts";
import { type Mode, Pool } from "./driver.ts";
import type { GroupParts } from "./group.ts";
import { Lanes } from "./lanes.ts";
import { CONNECTIONS, type ConnectionCounts, TIMEOUTS, type Timeouts } from "./limits.ts";
import { Presence } from "./presence.ts";
import { readsInTurn, urgentReads } from "./reads.ts";
import { upgrade } from "./upgrade.ts";

export interface PostgresOptions {
  /** `postgres://user:password@host:port/database`, through PgBouncer or directly. */
  readonly url: string;
  /** A direct URL of the same database. If it is given, `url` leads to a pooler such as PgBouncer. */
  readonly directUrl?: string;
  /** Without them, rows are not sealed and none is trusted. */
  readonly seals?: RowSeals;
  readonly timeouts?: Partial<Timeouts>;
  readonly connections?: Partial<ConnectionCounts>;
}

/**
 * Opens the database, and upgrades its schema if that is needed. Any number of nodes may use it at the same time.
 *
 * @throws OperatorError if the database cannot be reached, is too old, or belongs to something else
 */
export async function openPostgres(options: PostgresOptions): Promise<Db> {
  const timeouts = { ...TIMEOUTS, ...options.timeouts };
  const counts = { ...CONNECTIONS, ...options.connections };
  const seals = options.seals ?? new RowSeals(null);
  await upgrade(options.directUrl ?? options.url, timeouts);
  const mode: Mode = { isPooled: options.directUrl !== undefined };
  const presence = new Presence({
    ...{ url: options.url, timeouts },
    waitingSince: () => Math.min(...Object.values(pools).map((each) => each.waitingSince)),
    onAway: () => {
      for (const each of Object.values(pools)) each.abandon();
    },
  });
  const pool = (max: number) => new Pool({ url: options.url, mode, timeouts, max, presence });
  const pools = { writers: pool(counts.writers), readers: pool(counts.readers), urgent: pool(counts.urgent) };
  let last: ((tx: Tx) => Promise<void>) | null = null;
  let first: ((tx: Tx) => Promise<void> | undefined) | null = null;
  const parts: Omit<GroupParts, "pool"> = {
    mode,
    timeouts,
    seals,
    marks: new CommitMarks(),
    beforeCommit: () => last,
    afterLock: () => first,
  };
  const lanes = new Lanes({ ...parts, pool: pools.writers });
  const urgentLanes = new Lanes({ ...parts, pool: pools.urgent });
  const runOn =
    (target: Lanes): Sql["run"] =>
    (sql, params) =>
      target.submit(null, (tx) => tx.run(sql, params), {});
  return {
    ...readsInTurn(pools.readers, timeouts.retryMs),
    seals,
    run: runOn(lanes),
    urgent: { ...urgentReads(pools.urgent, timeouts.retryMs), seals, run: runOn(urgentLanes) },
    tx: (workspaces, work, txOptions = {}) => lanes.submit(workspaces, work, txOptions),
    afterLock(work) {
      if (first) throw new Error("a function already runs after each lock");
      first = work;
    },
    beforeCommit(work) {
      if (last) throw new Error("a function already runs before each commit");
      last = work;
    },
    async close() {
      await Promise.all([lanes.end(), urgentLanes.end()]);
      await Promise.all([presence.close(), ...Object.values(pools).map((each) => each.close())]);
    },
  };
}
