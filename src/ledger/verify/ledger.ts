import type { ReadOnlyDatabase } from "../../store/sqlite/read-only.ts";
import type { SignedCheckpoint } from "../proof/checkpoint.ts";
import { type VerifyTools, verdictOf } from "../proof/verification.ts";
import { TILE_WIDTH } from "../tiles.ts";
import { IndexCheck } from "./block-index.ts";
import { EndedTokenCheck } from "./ended-tokens.ts";
import { expiringUpTo } from "./expiring.ts";
import type { VerifiedEntryFields } from "./form.ts";
import { checkSeries, readHead, reportUnsignedTail } from "./head.ts";
import {
  type KeyEvidence,
  type Keyring,
  newKeyOf,
  type Rotation,
  reportLostKeys,
  rotationOf,
  saysKeyLost,
} from "./keyring.ts";
import type { StoredHeads } from "./node-head.ts";
import { PayloadCheck } from "./payloads.ts";
import { ReferenceCheck } from "./references.ts";
import { counted, type VerificationReport } from "./report.ts";
import { reportRewritten, reportTail } from "./rewritten.ts";
import { type KeptCheckpoint, RootCheck } from "./roots.ts";
import { TaskRowCheck } from "./task-rows.ts";
import { TileCheck } from "./tiles.ts";
import { LedgerTree } from "./tree.ts";
import { walk } from "./walk.ts";

export interface LedgerParts {
  readonly database: ReadOnlyDatabase;
  readonly workspaceId: number;
  readonly origin: string;
  readonly keys: Keyring;
  readonly heads: StoredHeads;
  /** This ledger's checkpoints from elsewhere. */
  readonly given: readonly SignedCheckpoint[];
  readonly tools: VerifyTools;
  /** Milliseconds. */
  readonly now: number;
  readonly report: VerificationReport;
}

/** The result of a walk through one ledger. Which keys are trusted is decided once all ledgers are known. */
export interface WalkedLedger extends KeyEvidence {
  readonly size: number;
  /** Number of stored and given checkpoints with a valid signature. */
  readonly checkpoints: number;
  /** Checkpoints that the auditor kept elsewhere. */
  readonly kept: readonly KeptCheckpoint[];
  /** Whether the last commit's head exists and has a valid signature. */
  readonly hasHead: boolean;
  /** Names of the workspaces created according to this ledger's entries. */
  readonly created: ReadonlySet<string>;
  /** The directory's keys that replaced another, lost or not, according to an entry. */
  readonly named: ReadonlySet<string>;
  /** Number of texts erased according to records that no valid checkpoint covers. */
  readonly unvouchedErasures: number;
}

/** Findings that follow from changed entries. */
const FOLLOWING = [
  "index_changed",
  "index_missing",
  "payload_changed",
  "payload_surplus",
  "reference_differs",
];

/** Checks one workspace's ledger and everything derived from it, in one pass and constant memory. */
export async function walkLedger(parts: LedgerParts): Promise<WalkedLedger> {
  const { database, workspaceId, origin, keys, heads, given, tools, now, report } = parts;
  const last = lastSeq(database, workspaceId);
  const tiled = tiledSize(database, workspaceId, last);
  const tree = new LedgerTree();
  const tiles = new TileCheck(database, workspaceId, tiled, report);
  const index = new IndexCheck(database, workspaceId, tiled, report);
  const expiring = await expiringUpTo({ database, workspaceId, last, now, report });
  const payloads = new PayloadCheck(database, workspaceId, expiring, report);
  const references = new ReferenceCheck(database, workspaceId, report);
  const endedTokens = new EndedTokenCheck(report);
  const taskRows = new TaskRowCheck(database, workspaceId, report);
  const verifierKeys = keys.verifierKeys(origin);
  const head = await readHead({
    ...{ database, workspaceId, origin, heads, tools, report },
    keys: verifierKeys,
    storedKeys: keys.stored,
  });
  const roots = new RootCheck({
    ...{ database, workspaceId, origin, given, head, tree, tools, report },
    keys: verifierKeys,
  });
  const rotations: Rotation[] = [];
  const lost: number[] = [];
  const named = new Set<string>();
  const created = new Set<string>();
  try {
    for (const step of walk(database, workspaceId, tiles, report)) {
      tiles.take(step, tree.take(step));
      index.take(step);
      payloads.take(step);
      references.take(step);
      endedTokens.take(step);
      taskRows.take(step);
      const rotation = step.entry && rotationOf(step.entry, origin, tools);
      if (rotation) rotations.push(rotation);
      if (step.entry && saysKeyLost(step.entry)) lost.push(step.seq);
      const newKey = step.entry && newKeyOf(step.entry, origin, tools);
      if (newKey && keys.isStored(newKey)) named.add(newKey);
      const workspace = step.entry && createdBy(step.entry);
      if (workspace) created.add(workspace);
      const settled = roots.take(step);
      if (!settled) continue;
      await settled;
      if ([...roots.signed.values()].includes(step.seq)) payloads.vouched();
    }
    await roots.end();
    tiles.end(tree.isLost);
    reportLostKeys(report, lost, roots.given.lastGood);
    const rewritten = reportRewritten(report, roots, tiles.difference);
    const isCut = reportTail(report, roots, last, tiles.entriesOnce);
    reportUnsignedTail(report, head, last);
    // If the checkpoints are also signed only by unknown keys, the keys were changed.
    if (report.has((code) => code === "checkpoint_of_another_key"))
      report.withdraw(["head_of_another_key"], 0);
    checkSeries({ database, workspaceId, report }, head, tools);
    tiles.report(rewritten !== null, isCut);
    // Derived data that does not match changed or missing entries is not reported again.
    const fromThere = rewritten ?? (isCut ? last + 1 : Number.POSITIVE_INFINITY);
    report.withdraw(FOLLOWING, fromThere);
    index.end(fromThere);
    payloads.end(fromThere);
    taskRows.end(verdictOf(report.findings) !== "tampered");
  } finally {
    roots.close();
    payloads.close();
  }
  report.fact("Entries", counted(last));
  if (!tree.isLost && last > 0) report.fact("Root", tree.root().toBase64());
  report.fact(
    "Checkpoints",
    `${counted(roots.stored.count)} stored${given.length > 0 ? `, ${counted(roots.given.count)} given` : ""}`,
  );
  if (roots.uncompared > 0) {
    report.fact(
      "Not compared",
      `${counted(roots.uncompared)} checkpoints: entries that they cover are missing or unknown`,
    );
  }
  return {
    size: last,
    checkpoints: roots.stored.count + roots.given.count,
    kept: roots.kept,
    hasHead: head !== null,
    created,
    signed: roots.signed,
    rotations,
    named,
    unvouchedErasures: payloads.unvouched,
  };
}

/** The workspace created according to an entry. */
function createdBy({ action, outcome, detail }: VerifiedEntryFields): string | null {
  if (action !== "workspace.create" || outcome !== "succeeded") return null;
  return typeof detail?.workspace === "string" ? detail.workspace : null;
}

function lastSeq(database: ReadOnlyDatabase, workspaceId: number): number {
  const sql = "SELECT seq FROM main.ledger NOT INDEXED WHERE workspace_id = $1 ORDER BY seq DESC LIMIT 1";
  return database.get<{ seq: number }>(sql, [workspaceId])?.seq ?? 0;
}

/**
 * The number of entries that must have tiles and an index. After an interrupted upgrade, the next start creates the
 * missing ones before anything is signed.
 */
function tiledSize(database: ReadOnlyDatabase, workspaceId: number, size: number): number {
  const isSigned = database.get(
    "SELECT 1 FROM main.ledger_checkpoints NOT INDEXED WHERE workspace_id = $1 LIMIT 1",
    [workspaceId],
  );
  if (isSigned) return size;
  const row = database.get<{ tile: number }>(
    "SELECT MAX(tile) AS tile FROM main.ledger_tiles NOT INDEXED WHERE workspace_id = $1 AND level = 0",
    [workspaceId],
  );
  return Math.min(size, ((row?.tile ?? -1) + 1) * TILE_WIDTH);
}
