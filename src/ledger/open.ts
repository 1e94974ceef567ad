import type { Clock } from "../base/clock.ts";
import type { RandomSource } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { LedgerConfig } from "../config/config.ts";
import type { Db } from "../store/db.ts";
import { CheckpointFile } from "./checkpoint-file.ts";
import { Checkpoints } from "./checkpoints.ts";
import { type LedgerKeys, openLedgerKeys, replaceLostKey } from "./keys.ts";
import { completeLedger, createLedger, type Ledger } from "./ledger.ts";
import { createProofs, type Proofs, type SignedHead } from "./proofs.ts";
import { type RotationParts, recordLostKey } from "./rotation.ts";

export interface OpenLedgerParts {
  readonly db: Db;
  /** The data directory, for the key. */
  readonly directory: string;
  readonly config: LedgerConfig;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Log;
  /** All that there are, also those that are created later. */
  workspaces(): readonly { readonly id: number; readonly name: string }[];
  nameOf(workspaceId: number): string;
  /** Told of each checkpoint that was signed by count or by time. MUST NOT throw. */
  publish(checkpoint: {
    readonly workspaceId: number;
    readonly origin: string;
    readonly head: SignedHead;
  }): void;
  /** Where the signing key is gone, a new one is made: nothing of the old one vouches for it. */
  readonly replaceLostKey: boolean;
}

export interface OpenLedger {
  readonly ledger: Ledger;
  readonly keys: LedgerKeys;
  readonly proofs: Proofs;
  readonly rotation: RotationParts;
  readonly checkpoints: Checkpoints;
}

/**
 * The ledgers with what proves them: tree, key, checkpoints.
 * @throws OperatorError where the signing key is not there
 */
export async function openLedger(parts: OpenLedgerParts): Promise<OpenLedger> {
  const { db, config, clock, random, log, workspaces, nameOf } = parts;
  for (const { id } of workspaces()) await completeLedger(db, id);
  const ledger = createLedger(db, clock, random);
  const isKeyReplaced = parts.replaceLostKey && (await replaceLostKey(parts));
  const keys = await openLedgerKeys(parts);
  const proofs = createProofs(db, keys, nameOf);
  const checkpoints = new Checkpoints(
    {
      db,
      ledger,
      proofs,
      clock,
      log,
      file: config.checkpointFile === undefined ? null : new CheckpointFile(config.checkpointFile, log),
      publish(workspaceId, head) {
        parts.publish({ workspaceId, origin: keys.originOf(nameOf(workspaceId)), head });
      },
    },
    { every: config.checkpointEvery, seconds: config.checkpointSeconds },
  );
  await checkpoints.open(workspaces().map(({ id }) => id));
  const rotation: RotationParts = {
    ledger,
    keys,
    clock,
    workspaces,
    signed: (workspaceId, head) => checkpoints.announce(workspaceId, head),
  };
  if (isKeyReplaced) await recordLostKey(rotation);
  return { ledger, keys, proofs, rotation, checkpoints };
}
