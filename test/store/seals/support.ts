import { Database } from "bun:sqlite";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Log } from "../../../src/base/log.ts";
import { verifyDirectory } from "../../../src/ledger/verify/directory.ts";
import { tools } from "../../../src/ledger/verify/tools.ts";
import { startGateway, type TestGateway, type TestGatewayOptions } from "../../support/gateway.ts";
import { tempDir } from "../../support/process.ts";
import { sealsOf } from "../../support/seals.ts";

/** A data directory between two starts, and what the second start reported. */
export interface Scene {
  readonly dataDir: string;
  gateway: TestGateway;
  /** Rows that the server reported in its log. */
  readonly named: string[];
  /** Stops the server, lets `edit` change the file, and starts the server again. */
  restart(edit?: (file: Database) => void, options?: TestGatewayOptions): Promise<void>;
  /**
   * As `restart`, but the start must fail; returns the reason. `expect(…).rejects` is not used, because the server
   * then takes seconds to end.
   */
  refusal(edit?: (file: Database) => void, options?: TestGatewayOptions): Promise<string>;
  /** Ends the server, and lets somebody edit the file. */
  edit(work: (file: Database) => void): Promise<void>;
  /** The findings of `ledger verify` with the directory's key. */
  findings(): Promise<string[]>;
  remove(): Promise<void>;
}

export async function openScene(options: TestGatewayOptions = {}): Promise<Scene> {
  const directory = tempDir();
  const named: string[] = [];
  let isOpen = true;
  const note = (message: string, facts?: object) => {
    if (facts && "table" in facts && "row" in facts) named.push(`${facts.table} ${facts.row}`);
    return message;
  };
  const log: Log = { debug: note, info: note, warn: note, error: note };
  const path = join(directory.path, "gatehouse.db");
  const scene: Scene = {
    dataDir: directory.path,
    gateway: await startGateway({ ...options, dataDir: directory.path, log }),
    named,
    async restart(edit = () => {}, more = {}) {
      const { admin } = scene.gateway;
      await scene.edit(edit);
      const again = await startGateway({ ...options, ...more, dataDir: directory.path, log });
      isOpen = true;
      scene.gateway = {
        ...again,
        admin,
        call: (method, route, given) => again.call(method, route, { token: admin, ...given }),
      };
    },
    async refusal(edit, more) {
      return scene.restart(edit, more).then(
        () => "",
        (error: unknown) => (error instanceof Error ? error.message : String(error)),
      );
    },
    async edit(work) {
      if (isOpen) await scene.gateway.stop();
      isOpen = false;
      const file = new Database(path);
      // Nothing here depends on when bytes reach the disk, and on a busy machine each sync takes seconds.
      file.exec("PRAGMA synchronous = OFF");
      work(file);
      file.exec("PRAGMA wal_checkpoint(TRUNCATE)");
      file.close();
    },
    async findings() {
      const { key } = sealsOf(directory.path);
      const trust = { keys: [], checkpoints: [] };
      const found = await verifyDirectory({ path, trust, workspace: null, secretKey: key }, tools);
      return found.findings.map(({ code, message }) => `${code}: ${message}`);
    },
    async remove() {
      if (isOpen) await scene.gateway.stop();
      directory.remove();
    },
  };
  return scene;
}

/** A row's present content, to be restored later. */
export function rowOf(file: Database, table: string, id: string): Record<string, string | number | null> {
  const row = file
    .query<Record<string, string | number | null>, [string]>(`SELECT * FROM ${table} WHERE id = ?`)
    .get(id);
  if (!row) throw new Error(`there is no ${table} ${id}`);
  return row;
}

/**
 * Lets `work` write while indexes have other definitions of the same length: rows are then left out of the true
 * index. The bytes are changed in the file, because SQLite does not allow writes to its schema.
 */
export function withIndexAs(
  dataDir: string,
  [own, other]: readonly [string, string],
  work: (file: Database) => void,
): void {
  const path = join(dataDir, "gatehouse.db");
  const redefine = (from: string, to: string) => {
    const bytes = readFileSync(path);
    let count = 0;
    for (let at = bytes.indexOf(from); at >= 0; at = bytes.indexOf(from, at + 1)) {
      bytes.write(to, at);
      count += 1;
    }
    if (count === 0 || from.length !== to.length) throw new Error(`${from} cannot become ${to}`);
    writeFileSync(path, bytes);
  };
  redefine(own, other);
  const file = new Database(path);
  work(file);
  file.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  file.close();
  redefine(other, own);
}

export function putBack(file: Database, table: string, row: Record<string, string | number | null>): void {
  const columns = Object.keys(row);
  file
    .query(
      `INSERT OR REPLACE INTO ${table} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`,
    )
    .run(...Object.values(row));
}
