import type { ReadOnlyDatabase } from "../../store/sqlite/read-only.ts";
import type { SignedCheckpoint } from "../proof/checkpoint.ts";
import type { VerifyTools } from "../proof/verification.ts";
import { TILE_WIDTH } from "../tiles.ts";
import { IndexCheck } from "./block-index.ts";
import { expiringUpTo } from "./expiring.ts";
import { type KeyEvidence, type Keyring, newKeyOf, type Rotation, rotationOf } from "./keyring.ts";
import { PayloadCheck } from "./payloads.ts";
import { counted, type Report } from "./report.ts";
import { reportRewritten, reportTail } from "./rewritten.ts";
import { RootCheck } from "./roots.ts";
import { ruleOf, type SigningRule } from "./tail.ts";
import { TileCheck } from "./tiles.ts";
import { LedgerTree } from "./tree.ts";
import { walk } from "./walk.ts";

export interface LedgerParts {
  readonly database: ReadOnlyDatabase;
  readonly workspaceId: number;
  readonly origin: string;
  readonly keys: Keyring;
  /** Checkpoints of this ledger from elsewhere. */
  readonly given: readonly SignedCheckpoint[];
  readonly tools: VerifyTools;
  /** In ms. */
  readonly now: number;
  readonly report: Report;
}

/** What a walk through a ledger leaves to be decided when all are known: which keys are believed. */
export interface WalkedLedger extends KeyEvidence {
  readonly size: number;
  /** Checkpoints whose signature is good, stored and given. */
  readonly checkpoints: number;
  /** By the hex of a key: how often is signed, where the entries under its last good checkpoint say it. */
  readonly rules: ReadonlyMap<string, SigningRule>;
  /** Those of the directory's keys that an entry says took the place of another, lost or not. */
  readonly named: ReadonlySet<string>;
  /** Texts that are gone by the word of records that no good checkpoint covers. */
  readonly unvouchedErasures: number;
}

/** Findings that follow from entries being others than they were. */
const FOLLOWING = ["index_changed", "index_missing", "payload_changed", "payload_surplus"];

/** Goes through one workspace's ledger and everything that is made of it, once, in constant memory. */
export async function walkLedger(parts: LedgerParts): Promise<WalkedLedger> {
  const { database, workspaceId, origin, keys, given, tools, now, report } = parts;
  const last = lastSeq(database, workspaceId);
  const tiled = tiledSize(database, workspaceId, last);
  const tree = new LedgerTree();
  const tiles = new TileCheck(database, workspaceId, tiled, report);
  const index = new IndexCheck(database, workspaceId, tiled, report);
  const expiring = await expiringUpTo({ database, workspaceId, last, now, report });
  const payloads = new PayloadCheck(database, workspaceId, expiring, report);
  const roots = new RootCheck({
    ...{ database, workspaceId, origin, given, tree, tools, report },
    keys: keys.verifierKeys(origin),
  });
  const rotations: Rotation[] = [];
  const rules = new Map<string, SigningRule>();
  const named = new Set<string>();
  let rule: SigningRule | null = null;
  try {
    for (const step of walk(database, workspaceId, tiles, report)) {
      tiles.take(step, tree.take(step));
      index.take(step);
      payloads.take(step);
      const rotation = step.entry && rotationOf(step.entry, origin, tools);
      if (rotation) rotations.push(rotation);
      const newKey = step.entry && newKeyOf(step.entry, origin, tools);
      if (newKey && keys.isStored(newKey)) named.add(newKey);
      rule = (step.entry && ruleOf(step.entry)) ?? rule;
      const settled = roots.take(step);
      if (!settled) continue;
      await settled;
      const signers = [...roots.signed].filter(([, size]) => size === step.seq);
      for (const [key] of signers) if (rule) rules.set(key, rule);
      if (signers.length > 0) payloads.vouched();
    }
    await roots.end();
    tiles.end(tree.isLost);
    const rewritten = reportRewritten(report, roots, tiles.difference);
    const isCut = reportTail(report, roots, last, tiles.entriesOnce);
    tiles.report(rewritten !== null, isCut);
    // What does not fit to entries that are others now, or gone, is no news either.
    const fromThere = rewritten ?? (isCut ? last + 1 : Number.POSITIVE_INFINITY);
    report.withdraw(FOLLOWING, fromThere);
    index.end(fromThere);
    payloads.end(fromThere);
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
      `${counted(roots.uncompared)} checkpoints: what they were signed over is not whole`,
    );
  }
  return {
    size: last,
    checkpoints: roots.stored.count + roots.given.count,
    signed: roots.signed,
    rotations,
    rules,
    named,
    unvouchedErasures: payloads.unvouched,
  };
}

function lastSeq(database: ReadOnlyDatabase, workspaceId: number): number {
  const sql = "SELECT seq FROM main.ledger NOT INDEXED WHERE workspace_id = $1 ORDER BY seq DESC LIMIT 1";
  return database.get<{ seq: number }>(sql, [workspaceId])?.seq ?? 0;
}

/**
 * For how many entries there have to be tiles and an index: those of an upgrade that was broken off are made by the next
 * start, before anything is signed.
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
