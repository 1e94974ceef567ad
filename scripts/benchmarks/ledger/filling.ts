import type { Static } from "typebox";
import { openWorkspaces } from "../../../src/access/workspaces.ts";
import { systemRandom } from "../../../src/base/ids.ts";
import { silentLog } from "../../../src/base/log.ts";
import { nodeHeadStore } from "../../../src/ledger/heads/open-node-heads.ts";
import { SigningKeyFile } from "../../../src/ledger/keys/file.ts";
import { type OpenChains, openChains } from "../../../src/ledger/open-chains.ts";
import type { Proofs } from "../../../src/ledger/reading/proofs.ts";
import { ledgerSize } from "../../../src/ledger/reading/query.ts";
import { databasePath } from "../../../src/store/directory.ts";
import { openSecretKey } from "../../../src/store/secret-key.ts";
import { openSqlite, type SqliteDb } from "../../../src/store/sqlite/open.ts";
import { Samples } from "../statistics.ts";
import { busyWorkspace, SetClock, STEP_MS } from "./entries.ts";
import type { fillResult } from "./jobs.ts";

/** Entries recorded at once, which share a transaction. */
const AT_ONCE = 1_024;

/** Creates a data directory whose workspace `default` has this many entries, like those of a busy workspace. */
export async function fill(dataDir: string, entries: number): Promise<Static<typeof fillResult.schema>> {
  const key = openSecretKey({ dataDir, masterKey: undefined, random: systemRandom });
  const db = openSqlite(databasePath(dataDir), { seals: { key } });
  const clock = new SetClock();
  // The entries end now, so that those of later requests come after them.
  const startedAt = Date.now() - entries * STEP_MS;
  clock.set(startedAt);
  await openWorkspaces(db, clock, { requestsPerMinute: 600, concurrentTasks: 60, enforcement: "soft" });
  const { id, ledger } = await chainsIn(db, dataDir, clock);
  const begun = performance.now();
  for (let from = 0; from < entries; from += AT_ONCE) {
    clock.set(startedAt + from * STEP_MS);
    const count = Math.min(AT_ONCE, entries - from);
    await Promise.all(
      Array.from({ length: count }, (_, index) => ledger.record(id, busyWorkspace(from + index))),
    );
  }
  const seconds = (performance.now() - begun) / 1_000;
  await db.close();
  return { seconds, startedAt };
}

/** Proves entries from all over a ledger, one after another. */
export async function prove(dataDir: string, seconds: number): Promise<{ p50: number; p99: number }> {
  const db = openSqlite(databasePath(dataDir));
  const { id, proofs } = await chainsIn(db, dataDir, new SetClock());
  const samples = await timesOf(proofs, id, await ledgerSize(db, id), seconds);
  await db.close();
  return { p50: samples.percentile(50) ?? 0, p99: samples.percentile(99) ?? 0 };
}

const PROOFS_PER_SECOND = 100_000;

async function timesOf(proofs: Proofs, workspaceId: number, size: number, seconds: number): Promise<Samples> {
  const samples = new Samples(Math.ceil(seconds * PROOFS_PER_SECOND) + 1);
  const end = performance.now() + seconds * 1_000;
  for (let begun = performance.now(); begun < end; begun = performance.now()) {
    const seq = 1 + Math.floor(Math.random() * size);
    const found = await proofs.inclusion(workspaceId, seq);
    if (found?.head.size !== size) throw new Error(`entry ${seq} of ${size} was not proven`);
    if (!samples.add(performance.now() - begun)) throw new Error("more proofs than there is room for");
  }
  return samples;
}

async function chainsIn(
  db: SqliteDb,
  directory: string,
  clock: SetClock,
): Promise<OpenChains & { id: number }> {
  const workspace = await workspaceOf(db);
  const chains = await openChains({
    log: silentLog,
    ...{ db, headStore: nodeHeadStore, keyStore: new SigningKeyFile(directory), clock, random: systemRandom },
    workspaces: () => [workspace],
    nameOf: () => workspace.name,
  });
  return { ...chains, id: workspace.id };
}

async function workspaceOf(db: SqliteDb): Promise<{ readonly id: number; readonly name: string }> {
  const found = await db.get<{ id: number; name: string }>(
    "SELECT id, name FROM workspaces WHERE name = 'default'",
  );
  if (!found) throw new Error("the data directory has no workspace");
  return found;
}
