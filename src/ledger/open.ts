import type { Log } from "../base/log.ts";
import type { LedgerConfig } from "../config/config.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { Sql } from "../store/db.ts";
import { Checkpoints } from "./checkpoints/checkpoints.ts";
import { CheckpointFile } from "./checkpoints/file.ts";
import { fileOutput } from "./checkpoints/output.ts";
import { SharedOutput } from "./checkpoints/shared-output.ts";
import { type FaultKind, LedgerFaults, reportChanged } from "./faults.ts";
import { GrowthElsewhere } from "./growth-elsewhere.ts";
import type { RotationParts } from "./keys/rotation.ts";
import { type OpenChains, type OpenChainsParts, openChains } from "./open-chains.ts";
import { LedgerLists } from "./reading/lists.ts";
import { lastCheckpointSize, type Proofs } from "./reading/proofs.ts";
import type { NamedWorkspace } from "./stored-end.ts";

/** The topic of the message after a rotation. */
const KEY_REPLACED = "ledger.key_replaced";

export interface OpenLedgerParts extends OpenChainsParts {
  readonly config: LedgerConfig;
  readonly nodes: Nodes;
  readonly log: Log;
  /** Called once for each change found while reading a ledger, for the metrics. */
  noticed(kind: FaultKind): void;
}

export interface OpenLedger extends OpenChains {
  readonly faults: LedgerFaults;
  readonly lists: LedgerLists;
  readonly rotation: RotationParts;
  readonly checkpoints: Checkpoints;
  /** Which ledgers other nodes append to. */
  readonly elsewhere: GrowthElsewhere;
}

/**
 * The ledgers and their evidence: tree, key and checkpoints.
 * @throws OperatorError if the signing key is missing, or if a ledger does not end with what it has signed
 */
export async function openLedger(parts: OpenLedgerParts): Promise<OpenLedger> {
  const { db, config, nodes, clock, log, workspaces } = parts;
  const chains = await openChains({ ...parts, checkpointFile: config.checkpointFile });
  const { ledger, heads, keys, proofs } = chains;
  const faults = new LedgerFaults({ ledger, log, noticed: parts.noticed });
  // Whoever verifies a head learns of a new key as well. This is for those who only ask for the key.
  nodes.bus.listen(KEY_REPLACED, () => void learnKey(parts, chains));
  const elsewhere = new GrowthElsewhere({ heads, ledger, nodes, log, workspaces });
  const lists = new LedgerLists({ db, heads, faults });
  const file = config.checkpointFile === undefined ? null : new CheckpointFile(config.checkpointFile, log);
  const { grown: grownElsewhere } = elsewhere;
  const { nameOf } = parts;
  const output = nodes.isShared
    ? new SharedOutput(
        { db, keys, proofs, faults, nodes, grownElsewhere, log, file, nameOf },
        await lastCheckpointSizes(db, workspaces()),
      )
    : fileOutput(file);
  const checkpoints = new Checkpoints(
    { db, ledger, heads, proofs, faults, clock, log, output, nodes, elsewhere },
    { every: config.checkpointEvery, seconds: config.checkpointSeconds },
  );
  await checkpoints.open(workspaces().map(({ id }) => id));
  const rotation: RotationParts = {
    ledger,
    heads,
    keys,
    clock,
    workspaces,
    signed: (workspaceId, head) => checkpoints.announce(workspaceId, head),
    replaced: () => nodes.bus.send(KEY_REPLACED, {}, { isUrgent: true }),
  };
  return { ...chains, proofs: reporting(proofs, faults), faults, lists, rotation, checkpoints, elsewhere };
}

/** Never rejects. */
async function learnKey({ workspaces, log }: OpenLedgerParts, { heads }: OpenChains): Promise<void> {
  const [any] = workspaces();
  try {
    if (any) await heads.committed(any.id);
  } catch (error) {
    log.warn("the new key of the ledgers cannot be read", { error });
  }
}

async function lastCheckpointSizes(
  sql: Pick<Sql, "get">,
  workspaces: readonly NamedWorkspace[],
): Promise<ReadonlyMap<number, number>> {
  const sizes = new Map<number, number>();
  for (const { id } of workspaces) sizes.set(id, await lastCheckpointSize(sql, id));
  return sizes;
}

/** The same proofs, but a changed store is reported when they find one. */
function reporting(proofs: Proofs, faults: LedgerFaults): Proofs {
  async function reported<T>(workspaceId: number, proof: Promise<T>): Promise<T> {
    try {
      return await proof;
    } catch (error) {
      reportChanged(faults, workspaceId, error);
      throw error;
    }
  }
  return {
    head: (id, size) => reported(id, proofs.head(id, size)),
    inclusion: (id, seq, size) => reported(id, proofs.inclusion(id, seq, size)),
    consistency: (id, from, to) => reported(id, proofs.consistency(id, from, to)),
  };
}
