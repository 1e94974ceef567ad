import { basename, join } from "node:path";
import { systemClock } from "../../../base/clock.ts";
import { OperatorError } from "../../../base/errors.ts";
import { systemRandom } from "../../../base/ids.ts";
import { NodeHeads } from "../../../ledger/heads/node-heads.ts";
import { nodeHeadStore } from "../../../ledger/heads/open-node-heads.ts";
import { sharedHeadStore } from "../../../ledger/heads/open-shared-heads.ts";
import { endOfTail, TailChanged } from "../../../ledger/heads/stored-tail.ts";
import { verifiedEnd } from "../../../ledger/heads/verified-end.ts";
import { SigningKeyFile } from "../../../ledger/keys/file.ts";
import { openLedgerKeys } from "../../../ledger/keys/keys.ts";
import { SealedSigningKey } from "../../../ledger/keys/sealed.ts";
import { formatSigningKey, type SigningKey } from "../../../ledger/keys/signing-key.ts";
import { ledgerChanged } from "../../../ledger/stored-end.ts";
import { WebhookSecretFile } from "../../../notify/secret.ts";
import { type CopiedRow, selectAll } from "../../../store/copying/tables.ts";
import type { LedgerTail } from "../../../store/db.ts";
import { databasePath } from "../../../store/directory.ts";
import { makeKeyFile } from "../../../store/key-file.ts";
import { WholeDatabase } from "../../../store/postgres/whole-database.ts";
import { SealedKeys } from "../../../store/sealed-keys.ts";
import { openSecretKey, requireMasterKey, type SealingKey } from "../../../store/secret-key.ts";
import { copiedTables } from "../../../store/sqlite/copied-tables.ts";
import { openReadOnly } from "../../../store/sqlite/read-only.ts";
import { NewDatabase } from "../../../store/sqlite/whole-database.ts";
import { createDirectory } from "../../new-directory.ts";
import {
  type Copied,
  type CopyParts,
  compareTables,
  copyTables,
  markVectorsMissing,
  nameIn,
  summary,
  type VerifiedLedger,
  workspacesOf,
} from "./copy.ts";
import { requireIntact } from "./intact.ts";

/**
 * Copies a database into a data directory that does not exist yet or is empty. It gets its name once it is complete and
 * all of its evidence was verified.
 * @throws OperatorError if servers use the database, its ledgers were changed, or the directory is not empty
 */
export async function copyFromPostgres({ dataDir, masterKey, url, progress }: CopyParts): Promise<Copied> {
  const sealingKey = requireMasterKey(masterKey);
  return createDirectory(dataDir, basename(databasePath(dataDir)), async (directory) => {
    const source = await WholeDatabase.openSource(url);
    try {
      return await copyOut(source, directory, { masterKey, sealingKey, progress });
    } finally {
      source.abandon();
    }
  });
}

interface OutParts extends Pick<CopyParts, "progress" | "masterKey"> {
  readonly sealingKey: SealingKey;
}

async function copyOut(
  source: WholeDatabase,
  directory: string,
  { masterKey, sealingKey, progress }: OutParts,
): Promise<Copied> {
  const tables = copiedTables();
  if (await source.isEmpty(tables)) {
    throw new OperatorError(`the database ${source.name} is empty`, "correct its URL");
  }
  progress("verifying the ends of the ledgers");
  const { ledgers, signingKey, webhookSecret } = await readSource(source, sealingKey);
  makeKeyFile(join(directory, "ledger.key"), formatSigningKey({ ...signingKey, use: "node_head" }));
  if (webhookSecret) new WebhookSecretFile(directory).write(webhookSecret);
  // The rows keep their seals, which the master key has made.
  openSecretKey({ masterKey, dataDir: directory }).markSealed();
  const target = new NewDatabase(databasePath(directory));
  let written: Awaited<ReturnType<typeof copyTables>>;
  try {
    await target.db.run("DELETE FROM meta");
    written = await copyTables({
      ...{ tables, progress },
      read: (table) => source.rows(table),
      change: (_, row) => row,
      write: (table, rows) => target.insert(table, rows),
    });
    await target.db.run("INSERT INTO meta (key, value) VALUES ('seal_key', $1)", [
      Buffer.from(sealingKey.id).toString("hex"),
    ]);
    target.continueKeys(await source.lastKeys());
    await markVectorsMissing(target.db);
    await signHeads(target, directory, ledgers);
    target.commit();
  } finally {
    target.close();
  }
  progress("comparing the copy with the database, and verifying its ledgers");
  const copy = openReadOnly(databasePath(directory));
  try {
    await compareTables(tables, (table) => copy.rows<CopiedRow>(selectAll(table)), written);
  } finally {
    copy.close();
  }
  await requireIntact(databasePath(directory), "the database", "--store");
  return summary(written, ledgers);
}

interface Source {
  readonly ledgers: readonly VerifiedLedger[];
  readonly signingKey: SigningKey;
  readonly webhookSecret: Uint8Array | undefined;
}

/** Verifies what the key has signed of each ledger, as a start does. @throws OperatorError */
async function readSource({ db }: WholeDatabase, sealingKey: SealingKey): Promise<Source> {
  const sealedKeys = await SealedKeys.open(db, sealingKey);
  const keyStore = new SealedSigningKey(db, sealedKeys);
  const keys = await openLedgerKeys({
    ...{ db, keyStore, headStore: sharedHeadStore, clock: systemClock, random: systemRandom },
  });
  const signingKey = await keyStore.readInForce(keys.headKey);
  if (!signingKey) throw keyStore.refusal("missing");
  const workspaces = await workspacesOf(db);
  const nameOf = nameIn(workspaces);
  const ledgers: VerifiedLedger[] = [];
  for (const workspace of workspaces) {
    const row = await db.get<LedgerTail>(
      "SELECT head, edge FROM ledger_tails WHERE workspace_id = $1 AND head IS NOT NULL",
      [workspace.id],
    );
    if (!row)
      throw ledgerChanged(workspace, "has no signed head: it was removed, or the workspace was added");
    try {
      const { tree, checkpoints } = endOfTail({ keys, nameOf }, workspace.id, row);
      const signed = { size: tree.size, root: tree.root(), checkpoints };
      ledgers.push({ workspace, end: await verifiedEnd(db, workspace, signed) });
    } catch (error) {
      throw error instanceof TailChanged ? ledgerChanged(workspace, error.message) : error;
    }
  }
  const webhook = await sealedKeys.read("webhook");
  return { ledgers, signingKey, webhookSecret: webhook?.secret };
}

/** Signs the heads of all ledgers together, as a single node does. */
async function signHeads(
  { db }: NewDatabase,
  directory: string,
  ledgers: readonly VerifiedLedger[],
): Promise<void> {
  const keys = await openLedgerKeys({
    ...{ db, keyStore: new SigningKeyFile(directory), headStore: nodeHeadStore },
    ...{ clock: systemClock, random: systemRandom },
  });
  const heads = new NodeHeads({ keys, nameOf: nameIn(ledgers.map(({ workspace }) => workspace)) });
  for (const { workspace, end } of ledgers) heads.set(workspace.id, end, false);
  await db.tx(null, (tx) => heads.write(tx));
}
