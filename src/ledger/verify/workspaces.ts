import type { ReadOnlyDatabase } from "../../store/sqlite/read-only.ts";
import type { Report } from "./report.ts";

export interface Workspace {
  readonly id: number;
  readonly name: string;
}

/** Tables whose rows are of a workspace. */
const TABLES = ["ledger", "ledger_checkpoints", "ledger_tiles", "ledger_index", "payloads"] as const;
const SMALLEST = -(2n ** 63n);
const LARGEST = 2n ** 63n - 1n;
/** Workspaces that there are not, which are looked for in each table. */
const MOST_ORPHANS = 100;

/** Those that the table has. Numbers are read as text: SQLite's go further than those that are exact here. */
export function storedWorkspaces(database: ReadOnlyDatabase, report: Report): Workspace[] {
  const workspaces: Workspace[] = [];
  const rows = database.rows<{ id: string; name: string }>(
    "SELECT CAST(id AS TEXT) AS id, name FROM main.workspaces ORDER BY id",
  );
  for (const { id, name } of rows) {
    if (Number.isSafeInteger(Number(id))) workspaces.push({ id: Number(id), name });
    else {
      report.tampered(
        "workspace_changed",
        `The workspace ${JSON.stringify(name)} has the number ${id}, which none gets: it was changed, or added.`,
      );
    }
  }
  return workspaces;
}

/** Entries, and what belongs to entries, of workspaces that there are not. */
export function checkOrphans(
  database: ReadOnlyDatabase,
  workspaces: readonly Workspace[],
  report: Report,
): void {
  const known = new Set(workspaces.map(({ id }) => BigInt(id)));
  const orphans = new Map<bigint, string[]>();
  for (const table of TABLES) {
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
      `There are rows of a workspace with the number ${id}, which is not there any more: in ${tables.join(", ")}.`,
    );
  }
}

/** One look into the table's key for each, however many rows it has. */
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
