import { existsSync } from "node:fs";
import { systemClock } from "../../../base/clock.ts";
import { OperatorError } from "../../../base/errors.ts";
import { systemRandom } from "../../../base/ids.ts";
import { nodeHeadStore } from "../../../ledger/heads/open-node-heads.ts";
import { verifiedEnd } from "../../../ledger/heads/verified-end.ts";
import { SigningKeyFile } from "../../../ledger/keys/file.ts";
import { openLedgerKeys } from "../../../ledger/keys/keys.ts";
import type { SigningKey } from "../../../ledger/keys/signing-key.ts";
import { parseHead } from "../../../ledger/proof/head.ts";
import { readRestoredNote } from "../../../store/backup/restored-note.ts";
import { DbWithin } from "../../../store/copying/within.ts";
import { databasePath } from "../../../store/directory.ts";
import { NEWEST_SCHEMA, openReadOnly, type ReadOnlyDatabase } from "../../../store/sqlite/read-only.ts";
import { nameIn, type VerifiedLedger, workspacesOf } from "./copy.ts";
import { requireIntact } from "./intact.ts";

/** A data directory whose ledgers were verified. */
export interface SourceDirectory {
  readonly database: ReadOnlyDatabase;
  readonly ledgers: readonly VerifiedLedger[];
  readonly signingKey: SigningKey;
}

const START_ONCE = "start this version of Gatehouse on it once, and stop it again";

/**
 * Opens a data directory, which this process has locked, and verifies all of its evidence. Writes nothing to the database.
 * @throws OperatorError if there is none, it belongs to another version, or its ledgers were changed
 */
export async function openSourceDirectory(
  dataDir: string,
  progress: (line: string) => void,
): Promise<SourceDirectory> {
  const path = databasePath(dataDir);
  if (!existsSync(path)) {
    throw new OperatorError(`there is no database in ${dataDir}`, "choose the directory with --data", 2);
  }
  if (readRestoredNote(dataDir)) {
    throw new OperatorError(
      `the data directory ${dataDir} was restored from a backup and not started since, so tasks that must not run again are still open`,
      START_ONCE,
    );
  }
  progress("verifying the ledgers of the data directory");
  await requireIntact(path, dataDir, `--data ${dataDir}`);
  const database = openReadOnly(path);
  try {
    if (database.schemaVersion !== NEWEST_SCHEMA) {
      throw new OperatorError(`the data directory ${dataDir} was written by an earlier version`, START_ONCE);
    }
    return { database, ...(await verifiedEnds(dataDir, database)) };
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Verifies what the key has signed of each ledger, as a start does. */
async function verifiedEnds(
  dataDir: string,
  database: ReadOnlyDatabase,
): Promise<Pick<SourceDirectory, "ledgers" | "signingKey">> {
  const db = new DbWithin({
    all: async (sql, params) => database.all(sql, params),
    run: () => Promise.reject(new Error("the database is only read")),
  });
  const keyStore = new SigningKeyFile(dataDir);
  const parts = { db, keyStore, headStore: nodeHeadStore, clock: systemClock, random: systemRandom };
  const inForce = await db.get<{ key: Uint8Array }>(
    "SELECT public_key AS key FROM ledger_keys ORDER BY id DESC LIMIT 1",
  );
  if (!inForce) throw new OperatorError(`there is no ledger in ${dataDir}`, START_ONCE);
  const keys = await openLedgerKeys(parts);
  const signingKey = await keyStore.readInForce(inForce.key);
  if (!signingKey) throw keyStore.refusal("missing");
  const workspaces = await workspacesOf(db);
  const nameOf = nameIn(workspaces);
  const { state } = await nodeHeadStore.open({ db, keys, workspaces: () => workspaces, nameOf });
  if (state !== "signed") {
    throw new OperatorError(
      `the heads of the ledgers in ${dataDir} are signed in an earlier way`,
      START_ONCE,
    );
  }
  const ledgers: VerifiedLedger[] = [];
  for (const workspace of workspaces) {
    const head = await db.get<{ note: string }>("SELECT note FROM ledger_heads WHERE workspace_id = $1", [
      workspace.id,
    ]);
    if (!head) throw new Error("a head that was verified is missing");
    ledgers.push({ workspace, end: await verifiedEnd(db, workspace, parseHead(head.note)) });
  }
  return { ledgers, signingKey };
}
