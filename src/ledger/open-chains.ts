import type { Clock } from "../base/clock.ts";
import { OperatorError } from "../base/errors.ts";
import type { RandomSource } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { Db } from "../store/db.ts";
import { compareKept } from "./checkpoints/kept.ts";
import { signFirstHeads } from "./heads/first-heads.ts";
import type { HeadStore, LedgerHeads } from "./heads/heads.ts";
import { type LedgerKeys, openLedgerKeys } from "./keys/keys.ts";
import { replaceLostKey } from "./keys/rotation.ts";
import type { SigningKeyStore } from "./keys/signing-key.ts";
import { createLedger, type Ledger } from "./ledger.ts";
import { createProofs, type Proofs } from "./reading/proofs.ts";

export interface OpenChainsParts {
  readonly db: Db;
  /** Keeps the signing key. */
  readonly keyStore: SigningKeyStore;
  readonly headStore: HeadStore;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Pick<Log, "warn">;
  /** All existing workspaces, including those created later. */
  workspaces(): readonly { readonly id: number; readonly name: string }[];
  nameOf(workspaceId: number): string;
  /** The file to which checkpoints are appended. The ledgers are compared with its end. */
  readonly checkpointFile?: string | undefined;
  /** If the signing key is missing, creates a new one, for which no older key vouches. */
  readonly replaceLostKey?: boolean;
}

export interface OpenChains {
  readonly ledger: Ledger;
  readonly heads: LedgerHeads;
  readonly keys: LedgerKeys;
  readonly proofs: Proofs;
}

/**
 * The chains of all workspaces, each verified against the head that the key has signed.
 * @throws OperatorError if the signing key is missing, or if a ledger does not end with what it has signed
 */
export async function openChains(parts: OpenChainsParts): Promise<OpenChains> {
  const { db, clock, random, log, workspaces, nameOf, replaceLostKey: replaceLost = false } = parts;
  const keys = await openLedgerKeys({ ...parts, replaceLost });
  const { heads, unsigned, state } = await parts.headStore.open({ db, keys, workspaces, nameOf });
  if (parts.checkpointFile !== undefined)
    await compareKept(parts.checkpointFile, { db, keys, heads, log, workspaces });
  const ledger = createLedger(db, clock, random, heads);
  if (state !== "signed" || keys.isReplacing) {
    // Runs even if it adds no entry, because its commit signs the heads.
    await db.tx(
      workspaces().map(({ id }) => id),
      async (tx) => {
        if (state === "first") await signFirstHeads(tx, ledger, unsigned);
        if (keys.isReplacing) await replaceLostKey(tx, { ledger, keys, workspaces });
      },
    );
  }
  await markSigned(keys, log);
  return { ledger, heads, keys, proofs: createProofs({ db, heads, keys, nameOf }) };
}

/** A key file mounted read-only cannot be marked. The heads are on disk already, so the start continues. */
async function markSigned(keys: LedgerKeys, log: Pick<Log, "warn">): Promise<void> {
  try {
    await keys.markSigned();
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    log.warn(
      "the key file does not record that it has signed the ledgers: anyone who can write the database could remove the signed heads, and the next start would sign altered entries; make the key file writable for this user for one start",
      { error },
    );
  }
}
