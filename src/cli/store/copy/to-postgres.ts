import { systemClock } from "../../../base/clock.ts";
import { OperatorError } from "../../../base/errors.ts";
import { systemRandom } from "../../../base/ids.ts";
import { silentLog } from "../../../base/log.ts";
import { sharedHeadStore } from "../../../ledger/heads/open-shared-heads.ts";
import { writeTail } from "../../../ledger/heads/shared-heads.ts";
import { endOfTail } from "../../../ledger/heads/stored-tail.ts";
import { verifiedEnd } from "../../../ledger/heads/verified-end.ts";
import { openLedgerKeys } from "../../../ledger/keys/keys.ts";
import { SealedSigningKey, storedSigningKey } from "../../../ledger/keys/sealed.ts";
import { firstWebhookSecret } from "../../../notify/sealed-secret.ts";
import { WebhookSecretFile } from "../../../notify/secret.ts";
import { claimDirectory } from "../../../store/claim.ts";
import { type CopiedRow, selectAll } from "../../../store/copying/tables.ts";
import type { LedgerTail } from "../../../store/db.ts";
import { WholeDatabase } from "../../../store/postgres/whole-database.ts";
import { SealedKeys } from "../../../store/sealed-keys.ts";
import { requireMasterKey, type SealingKey } from "../../../store/secret-key.ts";
import { copiedTables, lastKeysOf } from "../../../store/sqlite/copied-tables.ts";
import {
  type Copied,
  type CopyParts,
  compareTables,
  copyTables,
  markVectorsMissing,
  nameIn,
  summary,
  type VerifiedLedger,
} from "./copy.ts";
import { Resealing, sealingKeyOf } from "./reseal.ts";
import { openSourceDirectory, type SourceDirectory } from "./source-directory.ts";

/**
 * Copies a data directory into an empty database, in one transaction, and compares every byte before it commits.
 * @throws OperatorError if the directory is in use or its ledgers were changed, or the database is not empty
 */
export async function copyToPostgres({ dataDir, masterKey, url, progress }: CopyParts): Promise<Copied> {
  const sealingKey = requireMasterKey(masterKey);
  const lock = claimDirectory(dataDir, silentLog);
  try {
    const source = await openSourceDirectory(dataDir, progress);
    try {
      const target = await WholeDatabase.openTarget(url);
      try {
        const copied = await copyInto(target, source, { dataDir, sealingKey, progress });
        await target.commit();
        return copied;
      } finally {
        target.abandon();
      }
    } finally {
      source.database.close();
    }
  } finally {
    lock.release();
  }
}

interface IntoParts extends Pick<CopyParts, "dataDir" | "progress"> {
  readonly sealingKey: SealingKey;
}

async function copyInto(
  target: WholeDatabase,
  source: SourceDirectory,
  { dataDir, sealingKey, progress }: IntoParts,
): Promise<Copied> {
  const { database, ledgers } = source;
  const tables = copiedTables();
  if (!(await target.isEmpty(tables))) {
    throw new OperatorError(
      `the database ${target.name} is not empty`,
      "create an empty database: existing data is never overwritten",
    );
  }
  const resealing = new Resealing(
    sealingKeyOf(dataDir, sealingKey, (sql) => database.rows(sql)),
    sealingKey,
  );
  await target.send("DELETE FROM meta");
  const written = await copyTables({
    ...{ tables, progress },
    read: (table) => database.rows<CopiedRow>(selectAll(table)),
    change: (table, row) => resealing.change(table, row),
    write: (table, rows) => target.insert(table, rows),
  });
  await target.continueKeys(lastKeysOf(database));
  await markVectorsMissing(target.db);
  await signEnds(target, source, { dataDir, sealingKey });
  progress("comparing the copy with the data directory");
  await compareTables(tables, (table) => target.rows(table), written);
  return summary(written, ledgers);
}

/** Seals the keys of the directory's files under the master key, and signs the ends of all ledgers. */
async function signEnds(
  { db }: WholeDatabase,
  { ledgers, signingKey }: SourceDirectory,
  { dataDir, sealingKey }: Omit<IntoParts, "progress">,
): Promise<void> {
  const sealedKeys = await SealedKeys.open(db, sealingKey);
  const webhookSecret = new WebhookSecretFile(dataDir).read();
  await db.tx(null, async (tx) => {
    await sealedKeys.put(tx, storedSigningKey(signingKey, null));
    if (webhookSecret) await sealedKeys.put(tx, firstWebhookSecret(webhookSecret));
  });
  const keys = await openLedgerKeys({
    ...{ db, keyStore: new SealedSigningKey(db, sealedKeys), headStore: sharedHeadStore },
    ...{ clock: systemClock, random: systemRandom },
  });
  const heads = { db, keys, nameOf: nameIn(ledgers.map(({ workspace }) => workspace)) };
  await db.tx(null, async (tx) => {
    for (const { workspace, end } of ledgers) writeTail(tx, heads, workspace.id, end, tx);
  });
  await verifyEnds(db, heads, ledgers);
}

/** Reads the ends as a server does that starts on the copy. */
async function verifyEnds(
  db: WholeDatabase["db"],
  heads: Parameters<typeof endOfTail>[0],
  ledgers: readonly VerifiedLedger[],
): Promise<void> {
  for (const { workspace } of ledgers) {
    const row = await db.get<LedgerTail>("SELECT head, edge FROM ledger_tails WHERE workspace_id = $1", [
      workspace.id,
    ]);
    if (!row) throw new Error("a head that was written is missing");
    const { tree, checkpoints } = endOfTail(heads, workspace.id, row);
    await verifiedEnd(db, workspace, { size: tree.size, root: tree.root(), checkpoints });
  }
}
