import type { ReadOnlyDatabase } from "../../store/sqlite/read-only.ts";
import type { Checkpoint } from "../proof/checkpoint.ts";
import { type CheckpointSeries, extendSeries, NO_CHECKPOINTS, parseHead } from "../proof/head.ts";
import { keysDigest } from "../proof/node-head.ts";
import { NoteError, signersOf, type VerifierKey } from "../proof/note.ts";
import { parseSignedHead } from "../proof/signed-head.ts";
import type { VerifyTools } from "../proof/verification.ts";
import type { StoredHeads } from "./node-head.ts";
import { counted, span, type VerificationReport } from "./report.ts";
import { sharedHead } from "./shared-heads.ts";

/** The first schema whose commits sign the heads of the ledgers. */
export const FIRST_WITH_HEADS = 13;

const ANY_ROW =
  "SELECT 1 FROM main.ledger NOT INDEXED WHERE workspace_id = $1 UNION ALL" +
  " SELECT 1 FROM main.ledger_checkpoints NOT INDEXED WHERE workspace_id = $1 LIMIT 1";
const NOTES = "SELECT note FROM main.ledger_checkpoints NOT INDEXED WHERE workspace_id = $1 ORDER BY size";

export interface VerifiedHeadParts {
  readonly database: ReadOnlyDatabase;
  readonly workspaceId: number;
  readonly origin: string;
  readonly heads: StoredHeads;
  /** All possible signers, under the name they have in this ledger. */
  readonly keys: readonly VerifierKey[];
  /** The keys in the database, oldest first. */
  readonly storedKeys: readonly Uint8Array[];
  readonly tools: VerifyTools;
  readonly report: VerificationReport;
}

/** A ledger's head that a valid signature covers. */
export interface VerifiedHead extends Checkpoint {
  readonly checkpoints: CheckpointSeries;
  readonly signers: readonly VerifierKey[];
}

/** The head that the last commit signed; null if there is no valid one, which is reported. */
export async function readHead(parts: VerifiedHeadParts): Promise<VerifiedHead | null> {
  const { workspaceId, heads, report } = parts;
  const text = heads.texts.get(workspaceId);
  if (text === undefined) {
    reportMissing(parts);
    return null;
  }
  try {
    const edge = heads.edges?.get(workspaceId);
    if (edge) return await sharedHead(parts, text, edge);
    return heads.areSingle ? await singleHead(parts, text) : headAmongAll(parts, text);
  } catch (error) {
    if (!(error instanceof NoteError)) throw error;
    const message = `The ledger's head is invalid: ${error.message}. It was changed.`;
    report.tampered("head_changed", message);
  }
  return null;
}

function headAmongAll(
  { workspaceId, origin, heads, report }: VerifiedHeadParts,
  text: string,
): VerifiedHead | null {
  const head = parseHead(text);
  if (head.origin !== origin || head.workspaceId !== workspaceId) {
    reportForeign(report, head.origin);
    return null;
  }
  return heads.signers.length > 0 ? { ...head, signers: heads.signers } : null;
}

/** Reads the head of a version that signed each head individually. */
async function singleHead(parts: VerifiedHeadParts, text: string): Promise<VerifiedHead | null> {
  const { origin, keys, tools, report } = parts;
  const head = parseSignedHead(text);
  if (head.origin !== origin) {
    reportForeign(report, head.origin);
    return null;
  }
  const signers = await signersOf(head.note, keys, tools.verifySignature);
  if (signers.length === 0) {
    report.tampered(
      "head_of_another_key",
      "The ledger's head is not signed by any of the ledger's keys: somebody else made it, or the keys were changed.",
    );
    return null;
  }
  if (keysDigest(tools.sha256, parts.storedKeys).toHex() !== head.keys.toHex()) {
    report.tampered(
      "key_changed",
      "The ledgers' keys are not those stored when the ledger's head was signed: rows were added, removed or changed.",
    );
  }
  return { ...head, signers };
}

function reportForeign(report: VerificationReport, origin: string): void {
  const message = `The ledger's head belongs to another ledger, ${JSON.stringify(origin)}.`;
  report.tampered("head_of_another_ledger", message);
}

function reportMissing({ database, workspaceId, heads, report }: VerifiedHeadParts): void {
  if (database.schemaVersion < FIRST_WITH_HEADS) return;
  if (heads.isUnsigned) {
    report.undecided(
      "head_unsigned",
      "No head is signed yet: the first start of a version that signs heads was interrupted. Start this version on the directory once, so it signs them, and verify again.",
    );
  } else if (heads.texts.size > 0 || database.get(ANY_ROW, [workspaceId]) !== undefined) {
    report.tampered(
      "head_missing",
      "The ledger has no signed head, although every commit of a server writes one: it was removed, or the workspace was added.",
    );
  }
}

/** Reports entries after the signed head. */
export function reportUnsignedTail(
  report: VerificationReport,
  head: VerifiedHead | null,
  last: number,
): void {
  if (!head || last <= head.size) return;
  const { size } = head;
  report.tampered(
    "tail_unsigned",
    `The ledger's key has not signed ${span(size + 1, last)}: its head covers ${counted(size)} entries, and whoever added these after them did not have the key.`,
    size + 1,
  );
}

/**
 * Compares the stored checkpoints with those that the head covers. Skipped if a checkpoint has already been reported.
 */
export function checkSeries(
  { database, workspaceId, report }: Pick<VerifiedHeadParts, "database" | "workspaceId" | "report">,
  head: VerifiedHead | null,
  tools: Pick<VerifyTools, "sha256">,
): void {
  if (!head || report.has((code) => code.startsWith("checkpoint_"))) return;
  let series: CheckpointSeries = NO_CHECKPOINTS;
  for (const { note } of database.rows<{ note: unknown }>(NOTES, [workspaceId])) {
    series = extendSeries(tools.sha256, series, String(note));
  }
  const { count, digest } = head.checkpoints;
  if (series.count < count) {
    const missing = count - series.count;
    report.tampered(
      "checkpoint_missing",
      `${missing === 1 ? "One checkpoint is" : `${counted(missing)} checkpoints are`} missing: ${counted(count)} were stored when the ledger's head was signed, but only ${counted(series.count)} exist.`,
    );
  } else if (series.count > count) {
    report.tampered(
      "checkpoint_surplus",
      `${counted(series.count)} checkpoints are stored, but there were ${counted(count)} when the ledger's head was signed: some were added.`,
    );
  } else if (series.digest.toHex() !== digest.toHex()) {
    report.tampered(
      "checkpoint_replaced",
      "The stored checkpoints are not those that existed when the ledger's head was signed: one was replaced.",
    );
  }
}
