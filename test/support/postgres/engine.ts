/** The engine of a test's gateways. With PostgreSQL, a gateway that starts again in a data directory gets the same database. */
import { existsSync } from "node:fs";
import { databasePath } from "../../../src/store/directory.ts";
import { createDatabase, type TestDatabase } from "./database.ts";

/** Names the engine of gateways whose tests do not: `postgres`, or SQLite if it is not set. */
export const ENGINE = "TEST_STORE";

interface Used {
  readonly database: TestDatabase;
  gateways: number;
}

const byDirectory = new Map<string, Used>();

/** The database of a gateway, and how to give it up. Null: the gateway's store is in its data directory. */
export interface EngineDatabase {
  readonly url: string;
  /** The database is dropped once nothing can start in its directory again. */
  giveUp(): void;
}

export async function engineDatabase(dataDir: string): Promise<EngineDatabase | null> {
  if (process.env[ENGINE] !== "postgres" || existsSync(databasePath(dataDir))) return null;
  await dropUnused();
  const used = byDirectory.get(dataDir) ?? { database: await createDatabase(), gateways: 0 };
  byDirectory.set(dataDir, used);
  used.gateways += 1;
  return {
    url: used.database.url,
    giveUp() {
      used.gateways -= 1;
    },
  };
}

async function dropUnused(): Promise<void> {
  for (const [directory, { database, gateways }] of byDirectory) {
    if (gateways > 0 || existsSync(directory)) continue;
    byDirectory.delete(directory);
    await database.drop();
  }
}

/** The database of a directory's gateways. Undefined if their store is in the directory. */
export function databaseIn(dataDir: string): TestDatabase | undefined {
  return byDirectory.get(dataDir)?.database;
}
