import { Database } from "bun:sqlite";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { systemRandom } from "../../src/base/ids.ts";
import { silentLog } from "../../src/base/log.ts";
import type { EntryDraft } from "../../src/ledger/entry.ts";
import type { LedgerHeads } from "../../src/ledger/heads/heads.ts";
import { nodeHeadStore } from "../../src/ledger/heads/open-node-heads.ts";
import { SigningKeyFile } from "../../src/ledger/keys/file.ts";
import { type OpenChains, openChains } from "../../src/ledger/open-chains.ts";
import { LedgerLists } from "../../src/ledger/reading/lists.ts";
import type { Db } from "../../src/store/db.ts";
import { openSqlite, type SqliteDb } from "../../src/store/sqlite/open.ts";
import { FakeClock } from "../support/clock.ts";
import { ownConnectionOf } from "../support/own-connection.ts";
import { tempDir } from "../support/process.ts";
import { SEALS } from "../support/seals.ts";

export const ZEROS = new Uint8Array(32);

export interface Row {
  readonly workspace_id: number;
  readonly seq: number;
  readonly prev: Uint8Array;
  readonly leaf: Uint8Array;
  readonly bytes: string;
}

/** A ledger on a separate store, with the workspaces 1 and 2. */
export interface LedgerBench extends OpenChains {
  readonly lists: LedgerLists;
  /** Changes found while reading the ledgers: the kind and the entry. */
  readonly faults: string[];
  readonly db: SqliteDb;
  readonly clock: FakeClock;
  readonly path: string;
  rows(workspaceId?: number): Row[];
  /** A connection such as anyone may open, with SQLite's own settings. After it commits, the store refuses writes. */
  attacker(): Database;
  /** The store's own connection. Its commits do not count as foreign, like data written by bypassing SQLite. */
  readonly own: Database;
  close(): Promise<void>;
}

/** Opens the chains of a store as a start does. Its workspaces have the ids 1 and 2 and the names `w1` and `w2`. */
export function chainsOf(db: Db, directory: string, clock: FakeClock): Promise<OpenChains> {
  return openChains({
    ...{
      db,
      headStore: nodeHeadStore,
      keyStore: new SigningKeyFile(directory),
      clock,
      random: systemRandom,
      log: silentLog,
    },
    workspaces: () => [1, 2].map((id) => ({ id, name: `w${id}` })),
    nameOf: (id) => `w${id}`,
  });
}

/** Lists whose findings are collected in `faults`. */
export function listsOf(db: Db, heads: LedgerHeads, faults: string[] = []): LedgerLists {
  return new LedgerLists({
    ...{ db, heads },
    faults: { report: (_, { kind, seq }) => void faults.push(`${kind} ${seq}`) },
  });
}

/**
 * @param prepare changes the store before the ledgers are opened
 * @param rerunWork whether each transaction's work runs twice; false to count what it does
 */
export async function openLedger(prepare?: (path: string) => void, rerunWork = true): Promise<LedgerBench> {
  const directory = tempDir();
  const path = join(directory.path, "gatehouse.db");
  let db = openSqlite(path, { seals: SEALS, rerunWork });
  for (const id of [1, 2]) {
    await db.tx(1, async (tx) => {
      await tx.run("INSERT INTO workspaces (id, name, created_at) VALUES ($1, $2, 0)", [id, `w${id}`]);
      await tx.seals.seal(tx, "workspaces", { id });
    });
  }
  if (prepare) {
    await db.close();
    prepare(path);
    db = openSqlite(path, { seals: SEALS, rerunWork });
  }
  const clock = new FakeClock();
  const attackers: Database[] = [];
  const chains = await chainsOf(db, directory.path, clock);
  const faults: string[] = [];
  return {
    ...chains,
    lists: listsOf(db, chains.heads, faults),
    faults,
    db,
    clock,
    path,
    rows(workspaceId = 1) {
      const database = new Database(path, { readonly: true });
      const rows = database
        .query<Row, [number]>("SELECT * FROM ledger WHERE workspace_id = ? ORDER BY seq")
        .all(workspaceId);
      database.close();
      return rows;
    },
    attacker() {
      const database = new Database(path);
      // A thousand commits would take as long as the disk syncs them.
      database.exec("PRAGMA synchronous = OFF");
      attackers.push(database);
      return database;
    },
    own: ownConnectionOf(path),
    async close() {
      for (const each of attackers) each.close();
      await db.close();
      directory.remove();
    },
  };
}

export function draft(
  more: Partial<EntryDraft> = {},
): EntryDraft & { input?: undefined; output?: undefined } {
  const { input: _, output: __, ...fields } = more;
  return {
    phase: "single",
    action: "test.note",
    outcome: "succeeded",
    channel: "system",
    actor: "system",
    ...fields,
  };
}

/**
 * The faults that a verifier without this program's code would find in a chain: one sentence per entry, none if the
 * chain is valid.
 */
export function chainFaults(rows: readonly Row[]): string[] {
  const faults: string[] = [];
  let prev = Buffer.from(ZEROS);
  let ts = "";
  for (const [index, row] of rows.entries()) {
    const fault = (what: string) => faults.push(`${row.seq}: ${what}`);
    const entry = JSON.parse(row.bytes) as { seq: number; prev: string; ts: string };
    const leaf = createHash("sha256")
      .update(Buffer.from([0]))
      .update(row.bytes, "utf8")
      .digest();
    if (row.seq !== index + 1 || entry.seq !== row.seq) fault("is out of its place");
    if (!prev.equals(row.prev) || entry.prev !== prev.toString("hex"))
      fault("does not follow the one before");
    if (!leaf.equals(row.leaf)) fault("is not what was hashed");
    if (entry.ts < ts) fault("is older than the one before");
    prev = Buffer.from(row.leaf);
    ts = entry.ts;
  }
  return faults;
}

/** The number of migrations before ledgers had signed heads. */
export const BEFORE_HEADS = 12;
