/** A store that outlives its gateway, for tests that start another one. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ENGINE, type TestGatewayOptions } from "./gateway.ts";
import { createDatabase } from "./postgres/database.ts";

export interface LastingStore {
  /** For each gateway. */
  readonly options: Pick<TestGatewayOptions, "dataDir" | "database">;
  remove(): Promise<void>;
}

/** On the engine of this run of the tests. */
export async function lastingStore(): Promise<LastingStore> {
  const files = fileStore();
  if (process.env[ENGINE] !== "postgres") return files;
  const database = await createDatabase();
  return {
    options: { ...files.options, database },
    async remove() {
      await files.remove();
      await database.drop();
    },
  };
}

/** On SQLite in any run, for tests that are about its files. */
export function fileStore(): LastingStore {
  const dataDir = mkdtempSync(join(tmpdir(), "gatehouse-test-"));
  return {
    options: { dataDir },
    remove: async () => rmSync(dataDir, { recursive: true, force: true }),
  };
}
