import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Sql } from "../../store/db.ts";
import { copySharedStore } from "../../store/sqlite/shared-copy.ts";
import type { VerifyTools } from "../proof/verification.ts";
import { type DirectoryRequest, type DirectoryVerification, verifyDirectory } from "./directory.ts";

/** Runs work that sees one state of the store. */
export type ReadStore = <Result>(work: (sql: Pick<Sql, "all">) => Promise<Result>) => Promise<Result>;

/**
 * Verifies the evidence in a store that nodes share, alongside running nodes and without one. One state of it is copied to a
 * temporary file that only this user can read, and verified like the file of a single node, together with what only such a
 * store has: the signed tails, and the protection of the ledgers' rows.
 */
export async function verifySharedStore(
  read: ReadStore,
  request: Omit<DirectoryRequest, "path" | "shared">,
  tools: VerifyTools,
): Promise<DirectoryVerification> {
  const directory = await mkdtemp(join(tmpdir(), "gatehouse-verify-"));
  try {
    const path = join(directory, "gatehouse.db");
    const shared = await read((sql) => copySharedStore(sql, path));
    return await verifyDirectory({ ...request, path, shared }, tools);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
