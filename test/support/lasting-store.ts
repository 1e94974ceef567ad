/** A store that outlives its gateway, for tests that start another one. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestGatewayOptions } from "./gateway.ts";

export interface LastingStore {
  /** For each gateway. */
  readonly options: Pick<TestGatewayOptions, "dataDir" | "isOnFiles">;
  remove(): void;
}

/** On the engine of this run of the tests. */
export function lastingStore(): LastingStore {
  const dataDir = mkdtempSync(join(tmpdir(), "gatehouse-test-"));
  return { options: { dataDir }, remove: () => rmSync(dataDir, { recursive: true, force: true }) };
}

/** On SQLite in any run, for tests that are about its files. */
export function fileStore(): LastingStore {
  const { options, remove } = lastingStore();
  return { options: { ...options, isOnFiles: true }, remove };
}
