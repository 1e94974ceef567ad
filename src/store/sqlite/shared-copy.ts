import { Database } from "bun:sqlite";
import type { Sql, SqlValue } from "../db.ts";
import { migrate } from "./migrate.ts";

/** One state of a store that nodes share, as far as a file of SQLite has a place for it. */
export interface SharedCopy {
  /** The ends of the ledgers, as their rows were. */
  readonly tails: readonly SharedTail[];
  /** What no longer protects the rows of the ledgers, in words. */
  readonly unprotected: readonly string[];
  /** Rows that the store of a server cannot have: the table, and why they are not in the copy. */
  readonly refused: readonly { readonly table: string; readonly problem: string }[];
}

export interface SharedTail {
  readonly workspaceId: number;
  readonly head: string;
  readonly edge: Uint8Array;
}

type Row = Readonly<Record<string, SqlValue>>;

const MOST_ROWS = 512;
/** Pages become smaller as soon as one is longer than this. */
const PAGE_CHARACTERS = 4 << 20;
const TRIGGERS: readonly (readonly [table: string, name: string])[] = [
  ["ledger", "ledger_in_order"],
  ["ledger", "ledger_final"],
  ["ledger_checkpoints", "ledger_checkpoints_in_order"],
  ["ledger_checkpoints", "ledger_checkpoints_final"],
];

/**
 * Copies a store in PostgreSQL to a new file of SQLite, so that whatever verifies files can verify it.
 *
 * @param sql reads one state of the database
 * @param path MUST be in a directory that only this user can read, since the file contains all texts
 */
export async function copySharedStore(sql: Pick<Sql, "all">, path: string): Promise<SharedCopy> {
  const file = new Database(path, { create: true, strict: true });
  try {
    file.exec("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF");
    migrate(file);
    const triggers = objectsOf(file, "trigger");
    for (const { name } of triggers) file.exec(`DROP TRIGGER ${name}`);
    const refused: { table: string; problem: string }[] = [];
    for (const { name: table, sql: created } of objectsOf(file, "table")) {
      if (table.startsWith("sqlite_") || created.startsWith("CREATE VIRTUAL")) continue;
      const problem = await copyTable(sql, file, table);
      if (problem !== null) refused.push({ table, problem });
    }
    for (const { sql: created } of triggers) file.exec(created);
    return { tails: await tailsOf(sql), unprotected: await unprotectedBy(sql), refused };
  } finally {
    file.close();
  }
}

function objectsOf(file: Database, type: "table" | "trigger"): { name: string; sql: string }[] {
  return file
    .query<{ name: string; sql: string }, [string]>(
      "SELECT name, sql FROM sqlite_schema WHERE type = ? AND sql IS NOT NULL ORDER BY name",
    )
    .all(type);
}

/** @returns why some rows could not be copied; null if all were */
async function copyTable(sql: Pick<Sql, "all">, file: Database, table: string): Promise<string | null> {
  const key = await keyOf(sql, table);
  if (key.length === 0) return null;
  file.exec(`DELETE FROM ${table}`);
  const columns = file.query<{ name: string }, []>(`SELECT name FROM pragma_table_info('${table}')`).all();
  const names = columns.map(({ name }) => name);
  const listed = names.map(quoted).join(", ");
  const ordered = key.map(quoted).join(", ");
  const insert = file.query<unknown, SqlValue[]>(
    `INSERT INTO ${table} (${listed}) VALUES (${names.map(() => "?").join(", ")})`,
  );
  let problem: string | null = null;
  let limit = MOST_ROWS;
  for (let last: Row | undefined; ; ) {
    const from: string = last ? `WHERE (${ordered}) > (${key.map((_, at) => `$${at + 1}`).join(", ")})` : "";
    const values = last ? key.map((name) => last?.[name] ?? null) : [];
    const rows: Row[] = await sql.all<Row>(
      `SELECT ${listed} FROM ${table} ${from} ORDER BY ${ordered} LIMIT ${limit}`,
      values,
    );
    file.transaction(() => {
      for (const row of rows) {
        try {
          insert.run(...names.map((name) => row[name] ?? null));
        } catch (error) {
          problem ??= error instanceof Error ? error.message : String(error);
        }
      }
    })();
    if (rows.length < limit) return problem;
    last = rows.at(-1);
    const characters = rows.reduce((sum, row) => sum + lengthOf(row), 0);
    if (characters > PAGE_CHARACTERS) limit = Math.max(1, limit >> 2);
  }
}

/** Some columns have the names of keywords. */
function quoted(name: string): string {
  return `"${name}"`;
}

function lengthOf(row: Row): number {
  let length = 0;
  for (const value of Object.values(row)) {
    if (typeof value === "string" || value instanceof Uint8Array) length += value.length;
  }
  return length;
}

/** The columns of a table's primary key; empty if there is no such table. */
async function keyOf(sql: Pick<Sql, "all">, table: string): Promise<readonly string[]> {
  const rows = await sql.all<{ name: string }>(
    `SELECT a.attname::text AS name FROM pg_index AS i
     JOIN unnest(i.indkey) WITH ORDINALITY AS k (attnum, place) ON true
     JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
     WHERE i.indrelid = to_regclass($1) AND i.indisprimary ORDER BY k.place`,
    [table],
  );
  return rows.map(({ name }) => name);
}

async function tailsOf(sql: Pick<Sql, "all">): Promise<SharedTail[]> {
  const rows = await sql.all<{ workspace_id: number; head: string; edge: Uint8Array | null }>(
    "SELECT workspace_id, head, edge FROM ledger_tails WHERE head IS NOT NULL ORDER BY workspace_id",
  );
  return rows.map(({ workspace_id, head, edge }) => ({
    ...{ workspaceId: workspace_id, head },
    edge: edge ?? new Uint8Array(0),
  }));
}

/** Triggers that are missing or disabled, and rights that the program's role has withdrawn from itself. */
async function unprotectedBy(sql: Pick<Sql, "all">): Promise<string[]> {
  const found: string[] = [];
  const enabled = await sql.all<{ table: string; name: string }>(
    `SELECT c.relname::text AS "table", t.tgname::text AS name FROM pg_trigger AS t
     JOIN pg_class AS c ON c.oid = t.tgrelid JOIN pg_proc AS p ON p.oid = t.tgfoid
     WHERE c.oid IN (to_regclass('ledger'), to_regclass('ledger_checkpoints'))
       AND t.tgenabled IN ('O', 'A') AND p.prosrc LIKE '%RAISE EXCEPTION%'`,
  );
  for (const [table, name] of TRIGGERS) {
    if (!enabled.some((each) => each.table === table && each.name === name))
      found.push(`the trigger ${name} of ${table} is missing, disabled or changed`);
  }
  const granted = await sql.all<{ table: string; privilege: string }>(
    `SELECT c.relname::text AS "table", g.privilege_type::text AS privilege
     FROM pg_class AS c, aclexplode(c.relacl) AS g
     WHERE c.oid IN (to_regclass('ledger'), to_regclass('ledger_checkpoints'))
       AND g.privilege_type IN ('UPDATE', 'DELETE', 'TRUNCATE') ORDER BY 1, 2`,
  );
  for (const { table, privilege } of granted) found.push(`the right to ${privilege} ${table} was granted`);
  return found;
}
