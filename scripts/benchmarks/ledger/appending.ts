import { join } from "node:path";
import { systemClock } from "../../../src/base/clock.ts";
import { systemRandom } from "../../../src/base/ids.ts";
import { silentLog } from "../../../src/base/log.ts";
import { encodeEntry } from "../../../src/ledger/entry.ts";
import { nodeHeadStore } from "../../../src/ledger/heads/open-node-heads.ts";
import { SigningKeyFile } from "../../../src/ledger/keys/file.ts";
import type { Ledger } from "../../../src/ledger/ledger.ts";
import { openChains } from "../../../src/ledger/open-chains.ts";
import { type Connection, openWriter } from "../../../src/store/sqlite/connection.ts";
import { openSqlite } from "../../../src/store/sqlite/open.ts";
import { modelCallOutcome } from "./entries.ts";

const WORKSPACE = 1;
/** Entries whose bytes are prepared before the measurement. */
const PREPARED = 4_096;

/** Opens the ledger as the gateway does. */
export async function openEmptyLedger(folder: string): Promise<Ledger> {
  const db = openSqlite(join(folder, "ledger.db"));
  await db.run("INSERT INTO workspaces (id, name, created_at) VALUES ($1, 'bench', 0)", [WORKSPACE]);
  const { ledger } = await openChains({
    log: silentLog,
    ...{
      db,
      headStore: nodeHeadStore,
      keyStore: new SigningKeyFile(folder),
      clock: systemClock,
      random: systemRandom,
    },
    workspaces: () => [{ id: WORKSPACE, name: "bench" }],
    nameOf: () => "bench",
  });
  return ledger;
}

/**
 * Each caller records an entry, waits until it is on disk, and records the next.
 * @returns entries per second
 */
export async function appendToLedger(ledger: Ledger, callers: number, seconds: number): Promise<number> {
  const begun = performance.now();
  const end = begun + seconds * 1_000;
  let written = 0;
  async function call(first: number): Promise<void> {
    for (let index = first; performance.now() < end; index += callers) {
      await ledger.record(WORKSPACE, modelCallOutcome(index));
      written += 1;
    }
  }
  await Promise.all(Array.from({ length: callers }, (_, caller) => call(caller)));
  return written / ((performance.now() - begun) / 1_000);
}

/**
 * Writes the same bytes to a separate table without processing them: what SQLite itself costs with a sync for each
 * commit, and otherwise the gateway's settings (log, secure_delete).
 */
export class PlainTable {
  readonly #connection: Connection;
  readonly #bytes: readonly string[];
  #seq = 0;

  constructor(folder: string) {
    this.#connection = openWriter(join(folder, "table.db"));
    this.#connection.database.exec(
      "CREATE TABLE entries (seq INTEGER PRIMARY KEY, bytes TEXT NOT NULL) STRICT",
    );
    const ts = new Date().toISOString();
    this.#bytes = Array.from({ length: PREPARED }, (_, index) =>
      encodeEntry(modelCallOutcome(index), { seq: index + 1, prev: "0".repeat(64), ts }),
    );
  }

  /** @returns entries per second */
  append(rows: number, seconds: number): number {
    const insert = "INSERT INTO entries (seq, bytes) VALUES ($1, $2)";
    const begun = performance.now();
    const end = begun + seconds * 1_000;
    const before = this.#seq;
    while (performance.now() < end) {
      this.#connection.run("BEGIN IMMEDIATE");
      for (let row = 0; row < rows; row++) {
        this.#seq += 1;
        this.#connection.run(insert, [this.#seq, this.#bytes[this.#seq % PREPARED] ?? ""]);
      }
      this.#connection.run("COMMIT");
    }
    return (this.#seq - before) / ((performance.now() - begun) / 1_000);
  }
}
