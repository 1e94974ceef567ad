import type { ReadOnlyDatabase } from "../../store/sqlite/read-only.ts";
import type { KeyUse } from "../keys/signing-key.ts";
import { FIRST_WITH_HEADS } from "./head.ts";
import type { StoredHeads } from "./node-head.ts";
import type { VerificationReport } from "./report.ts";

export interface VerifiedWorkspace {
  readonly id: number;
  readonly name: string;
}

/** Tables whose rows belong to a workspace. */
const TABLES = [
  "ledger",
  "ledger_checkpoints",
  "ledger_heads",
  "ledger_tiles",
  "ledger_index",
  "payloads",
] as const;
const FIRST_WORKSPACE = "default";
const SMALLEST = -(2n ** 63n);
const LARGEST = 2n ** 63n - 1n;
/** Maximum number of missing workspaces reported per table. */
const MOST_ORPHANS = 100;

/**
 * The workspaces in the table. Numbers are read as text, because SQLite's integers can exceed JavaScript's safe
 * integers.
 */
export function storedWorkspaces(
  database: ReadOnlyDatabase,
  report: VerificationReport,
): VerifiedWorkspace[] {
  const workspaces: VerifiedWorkspace[] = [];
  const rows = database.rows<{ id: string; name: string }>(
    "SELECT CAST(id AS TEXT) AS id, name FROM main.workspaces ORDER BY workspaces.id",
  );
  for (const { id, name } of rows) {
    if (Number.isSafeInteger(Number(id))) workspaces.push({ id: Number(id), name });
    else {
      report.tampered(
        "workspace_changed",
        `The workspace ${JSON.stringify(name)} has the number ${id}, which Gatehouse never assigns: it was changed or added.`,
      );
    }
  }
  return workspaces;
}

/**
 * Whether a start got further than creating the schema. It then creates the first workspace, then the key, then signs
 * the heads.
 */
export function isBegun(
  workspaces: readonly VerifiedWorkspace[],
  keys: readonly Uint8Array[],
  { texts, areSingle }: Pick<StoredHeads, "texts" | "areSingle">,
): boolean {
  return workspaces.length > 0 || keys.length > 0 || texts.size > 0 || !areSingle;
}

/**
 * Reports a database that has a schema but nothing else that a start creates. `checkOrphans` reports rows of
 * evidence.
 */
export function reportEmpty(keyUse: KeyUse | null, report: VerificationReport): void {
  if (keyUse === null || keyUse === "none") {
    report.undecided(
      "ledger_empty",
      "There is no workspace, entry or key: the first start was interrupted before it created them. There is nothing to verify. Start Gatehouse on the directory.",
    );
  } else {
    report.tampered(
      "workspace_missing",
      "There is no workspace, entry or key, although the key file next to the database has signed ledgers: they were removed.",
    );
  }
}

/**
 * Compares the workspaces with the entries that created them. The first start creates `default`; every other
 * workspace is created by a recorded call.
 * @param created Names of workspaces according to the entries of all ledgers
 */
export function checkCreated(
  workspaces: readonly VerifiedWorkspace[],
  created: ReadonlySet<string>,
  report: VerificationReport,
): void {
  const known = new Set(workspaces.map(({ name }) => name));
  for (const name of [FIRST_WORKSPACE, ...created]) {
    if (known.has(name)) continue;
    report.tampered(
      "workspace_missing",
      name === FIRST_WORKSPACE
        ? `The workspace ${JSON.stringify(name)}, which the first start creates, no longer exists.`
        : `An entry records that the workspace ${JSON.stringify(name)} was created, but it no longer exists: it was removed with everything in it.`,
    );
  }
  for (const name of known) {
    if (name === FIRST_WORKSPACE || created.has(name)) continue;
    report.tampered(
      "workspace_unrecorded",
      `No entry records that the workspace ${JSON.stringify(name)} was created: it was added or renamed.`,
    );
  }
}

/** Reports entries, and data that belongs to entries, of workspaces that do not exist. */
export function checkOrphans(
  database: ReadOnlyDatabase,
  workspaces: readonly VerifiedWorkspace[],
  report: VerificationReport,
): void {
  const known = new Set(workspaces.map(({ id }) => BigInt(id)));
  const orphans = new Map<bigint, string[]>();
  for (const table of TABLES) {
    if (table === "ledger_heads" && database.schemaVersion < FIRST_WITH_HEADS) continue;
    let found = 0;
    for (const id of idsIn(database, table)) {
      if (known.has(id)) continue;
      orphans.set(id, [...(orphans.get(id) ?? []), table]);
      found += 1;
      if (found === MOST_ORPHANS) break;
    }
  }
  for (const [id, tables] of orphans) {
    report.tampered(
      "workspace_missing",
      `There are rows of a workspace with the number ${id}, which no longer exists: in ${tables.join(", ")}.`,
    );
  }
}

/** Runs one query on the table's key per workspace, however many rows it has. */
function* idsIn(database: ReadOnlyDatabase, table: (typeof TABLES)[number]): Generator<bigint, void> {
  const next =
    `SELECT CAST(workspace_id AS TEXT) AS id FROM main.${table}` +
    " WHERE workspace_id >= CAST($1 AS INTEGER) ORDER BY workspace_id LIMIT 1";
  for (let from = SMALLEST; from <= LARGEST; ) {
    const row = database.get<{ id: string }>(next, [String(from)]);
    if (row === undefined) return;
    const id = BigInt(row.id);
    yield id;
    from = id + 1n;
  }
}
