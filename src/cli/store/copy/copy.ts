import { OperatorError } from "../../../base/errors.ts";
import type { LedgerEnd } from "../../../ledger/heads/heads.ts";
import type { NamedWorkspace } from "../../../ledger/stored-end.ts";
import { DigestOfRows, type TableDigest } from "../../../store/copying/digest.ts";
import type { CopiedRow, CopiedTable } from "../../../store/copying/tables.ts";
import type { DbWithin } from "../../../store/copying/within.ts";

export interface CopyParts {
  readonly dataDir: string;
  /** The setting `master_key`, which the servers that share the database have. */
  readonly masterKey: string | undefined;
  /** A direct URL. */
  readonly url: string;
  /** Called with a line for people from time to time. */
  progress(line: string): void;
}

/** What was copied, and compared byte by byte. */
export interface Copied {
  readonly tables: number;
  readonly rows: number;
  readonly ledgers: readonly { readonly workspace: string; readonly entries: number }[];
}

/** A ledger whose end was verified. */
export interface VerifiedLedger {
  readonly workspace: NamedWorkspace;
  readonly end: LedgerEnd;
}

/** Reads a table in the order of its key. */
export type ReadTable = (table: CopiedTable) => AsyncIterable<CopiedRow> | Iterable<CopiedRow>;

/** Passages without a vector. The vectors themselves are not copied. */
const PENDING = "vault_pending";
/** Spaces whose vectors would be searched or filled. Those of the others are only kept for a change back. */
const SPACES = "vault_spaces";
const COPIED_SPACES: readonly unknown[] = ["active", "filling"];
const MISSING_VECTORS = `INSERT INTO vault_pending (space_id, chunk_key, retry_at)
  SELECT s.id, c.key, 0 FROM vault_spaces AS s CROSS JOIN vault_chunks AS c`;
/** The name of the key that seals rows, which only a data directory has. */
const SEAL_KEY = "seal_key";
const PROGRESS_ROWS = 50_000;

/** Whether a row is copied unchanged, or created again in the copy. */
function isCopied({ name }: CopiedTable, row: CopiedRow): boolean {
  if (name === SPACES) return COPIED_SPACES.includes(row.state);
  return !(name === "meta" && row.key === SEAL_KEY);
}

export interface TableCopy {
  readonly tables: readonly CopiedTable[];
  readonly read: ReadTable;
  /** A row as it is to be written. */
  readonly change: (table: CopiedTable, row: CopiedRow) => CopiedRow;
  readonly write: (table: CopiedTable, rows: AsyncIterable<CopiedRow>) => Promise<void>;
  readonly progress: (line: string) => void;
}

/** Copies all tables. @returns the digest of what was written to each */
export async function copyTables(copy: TableCopy): Promise<ReadonlyMap<string, TableDigest>> {
  const digests = new Map<string, TableDigest>();
  for (const table of copy.tables) {
    if (table.name === PENDING) continue;
    const digest = new DigestOfRows(table);
    await copy.write(table, changed(copy, table, digest));
    const ended = digest.end();
    digests.set(table.name, ended);
    if (ended.rows > 0) copy.progress(`${table.name}: ${ended.rows} rows`);
  }
  return digests;
}

async function* changed(
  { read, change, progress }: TableCopy,
  table: CopiedTable,
  digest: DigestOfRows,
): AsyncGenerator<CopiedRow, void> {
  let count = 0;
  for await (const stored of read(table)) {
    if (!isCopied(table, stored)) continue;
    const row = change(table, stored);
    digest.add(row);
    count += 1;
    if (count % PROGRESS_ROWS === 0) progress(`${table.name}: ${count} rows so far`);
    yield row;
  }
}

/** Marks all passages as lacking vectors, which the server then makes. */
export async function markVectorsMissing(db: DbWithin): Promise<void> {
  await db.run(MISSING_VECTORS);
}

/** Reads everything that was written again. @throws OperatorError if a byte differs */
export async function compareTables(
  tables: readonly CopiedTable[],
  read: ReadTable,
  written: ReadonlyMap<string, TableDigest>,
): Promise<void> {
  for (const table of tables) {
    const expected = written.get(table.name);
    if (!expected) continue;
    const digest = new DigestOfRows(table);
    for await (const row of read(table)) if (isCopied(table, row)) digest.add(row);
    const found = digest.end();
    if (found.rows === expected.rows && found.sha256 === expected.sha256) continue;
    throw new OperatorError(
      `the copy of the table ${table.name} differs from the original, so nothing was copied`,
      "try again; if it differs again, please report it",
    );
  }
}

/** The workspaces in the order of their numbers. */
export function workspacesOf(db: DbWithin): Promise<NamedWorkspace[]> {
  return db.all<NamedWorkspace>("SELECT id, name FROM workspaces ORDER BY id");
}

export function nameIn(workspaces: readonly NamedWorkspace[]): (id: number) => string {
  const names = new Map(workspaces.map(({ id, name }) => [id, name]));
  return (id) => names.get(id) ?? "";
}

export function summary(
  written: ReadonlyMap<string, TableDigest>,
  ledgers: readonly VerifiedLedger[],
): Copied {
  const digests = [...written.values()];
  return {
    tables: digests.length,
    rows: digests.reduce((total, { rows }) => total + rows, 0),
    ledgers: ledgers.map(({ workspace, end }) => ({ workspace: workspace.name, entries: end.tree.size })),
  };
}
