/** PostgreSQL's tables are those of SQLite, and the ledger's rows are final. */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Db } from "../../../src/store/db.ts";
import { openPostgres } from "../../../src/store/postgres/open.ts";
import { migrate } from "../../../src/store/sqlite/migrate.ts";
import { createDatabase, missingPostgres, type TestDatabase } from "../../support/postgres/database.ts";
import { outcomes } from "../support.ts";

/** What only a store with several nodes has. */
const OF_NODES = [
  ...[
    "commit_marks",
    "gatehouse_schema",
    "ledger_tails",
    "node_leases",
    "nodes",
    "sealed_keys",
    "sign_in_links",
  ],
  ...["budget_reservations", "spending_months", "request_buckets", "limit_notices"],
];

/** What only a store with one node has: the heads of all ledgers, signed together. */
const OF_ONE_NODE = ["ledger_heads", "ledger_node_heads"];

/** A schema in words that both engines share: table, column or index, then what it is. */
type Described = Record<string, string>;

const TYPES: Readonly<Record<string, string>> = {
  INTEGER: "bigint",
  TEXT: 'text COLLATE "C"',
  BLOB: "bytea",
  REAL: "double precision",
};

interface SqliteColumn {
  readonly name: string;
  readonly type: string;
  readonly notnull: number;
  readonly dflt_value: string | null;
  readonly pk: number;
}

function describeSqlite(): Described {
  const database = new Database(":memory:");
  migrate(database);
  const all = <Row>(sql: string) => database.query<Row, []>(sql).all();
  const described: Described = {};
  for (const { name, sql } of all<{ name: string; sql: string }>(
    "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
  )) {
    const columns = all<SqliteColumn>(`PRAGMA table_xinfo (${name})`);
    const key = columns.filter(({ pk }) => pk > 0).sort((a, b) => a.pk - b.pk);
    described[`${name} key`] = key.map((column) => column.name).join(", ");
    for (const column of columns) {
      const isRequired = column.notnull > 0 || column.pk > 0;
      described[`${name}.${column.name}`] =
        `${TYPES[column.type]}${isRequired ? " NOT NULL" : ""} ${column.dflt_value ?? ""}`.trim();
    }
    const references = all<{ id: number; table: string; from: string; to: string }>(
      `PRAGMA foreign_key_list (${name})`,
    );
    for (const id of new Set(references.map((each) => each.id))) {
      const pairs = references.filter((each) => each.id === id);
      const from = pairs.map((each) => each.from).join(", ");
      described[`${name} (${from}) refers to`] =
        `${pairs[0]?.table} (${pairs.map((each) => each.to).join(", ")})`;
    }
    for (const index of all<{ name: string; unique: number; origin: string }>(
      `PRAGMA index_list (${name})`,
    )) {
      if (index.origin === "pk") continue;
      const list = all<{ name: string }>(`PRAGMA index_info (${index.name})`).map((column) => column.name);
      if (index.origin === "u") described[`${name} unique`] = list.join(", ");
      else {
        const text = all<{ sql: string }>(`SELECT sql FROM sqlite_schema WHERE name = '${index.name}'`)[0]
          ?.sql;
        const where = / WHERE (.*)$/s.exec(text ?? "")?.[1] ?? "";
        described[`${name} index ${index.name}`] =
          `${index.unique ? "unique " : ""}${list.join(", ")} ${condition(where)}`.trim();
      }
    }
    expect(sql).not.toContain("CHECK");
  }
  database.close();
  return described;
}

/** Without what PostgreSQL adds to a condition. */
function condition(text: string): string {
  return text
    .replace(/::text|[()]/g, "")
    .replace(/\s+/g, " ")
    .trim();
}

async function describePostgres(database: TestDatabase): Promise<Described> {
  const described: Described = {};
  const columns = await database.query<{
    table: string;
    name: string;
    type: string;
    collation: string | null;
    notnull: boolean;
    value: string | null;
    key: string;
  }>(`
    SELECT c.relname AS table, a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type, a.attnotnull AS notnull,
      pg_get_expr(d.adbin, d.adrelid) AS value, l.collname AS collation
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
    LEFT JOIN pg_collation l ON l.oid = a.attcollation
    WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace ORDER BY c.relname, a.attnum`);
  for (const { table, name, type, collation, notnull, value } of columns) {
    const collated = collation === null ? type : `${type} COLLATE "${collation}"`;
    described[`${table}.${name}`] =
      `${collated}${notnull ? " NOT NULL" : ""} ${value?.replace("::text", "") ?? ""}`.trim();
  }
  const constraints = await database.query<{
    table: string;
    kind: string;
    columns: string;
    target: string | null;
    others: string | null;
  }>(`
    SELECT n.conrelid::regclass::text AS table, n.contype AS kind, n.confrelid::regclass::text AS target,
      (SELECT string_agg(a.attname, ', ' ORDER BY o) FROM unnest(n.conkey) WITH ORDINALITY AS k (num, o)
        JOIN pg_attribute a ON a.attrelid = n.conrelid AND a.attnum = num) AS columns,
      (SELECT string_agg(a.attname, ', ' ORDER BY o) FROM unnest(n.confkey) WITH ORDINALITY AS k (num, o)
        JOIN pg_attribute a ON a.attrelid = n.confrelid AND a.attnum = num) AS others
    FROM pg_constraint n WHERE n.connamespace = 'public'::regnamespace`);
  for (const { table, kind, columns: list, target, others } of constraints) {
    if (kind === "p") described[`${table} key`] = list;
    else if (kind === "u") described[`${table} unique`] = list;
    else if (kind === "f") described[`${table} (${list}) refers to`] = `${target} (${others})`;
  }
  const indexes = await database.query<{
    table: string;
    name: string;
    unique: boolean;
    columns: string;
    where: string | null;
  }>(`
    SELECT i.indrelid::regclass::text AS table, c.relname AS name, i.indisunique AS unique,
      pg_get_expr(i.indpred, i.indrelid) AS where,
      (SELECT string_agg(pg_get_indexdef(i.indexrelid, k, TRUE), ', ' ORDER BY k)
        FROM generate_series(1, i.indnatts) AS k) AS columns
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    WHERE c.relnamespace = 'public'::regnamespace
      AND NOT EXISTS (SELECT 1 FROM pg_constraint n WHERE n.conindid = i.indexrelid AND n.contype IN ('p', 'u'))`);
  for (const { table, name, unique, columns: list, where } of indexes) {
    described[`${table} index ${name}`] =
      `${unique ? "unique " : ""}${list} ${condition(where ?? "")}`.trim();
  }
  return without(described, OF_NODES);
}

function without(described: Described, tables: readonly string[]): Described {
  return Object.fromEntries(
    Object.entries(described).filter(([name]) => !tables.some((table) => name.startsWith(table))),
  );
}

describe.skipIf(missingPostgres !== undefined)("the schema of PostgreSQL", () => {
  let database: TestDatabase;
  let db: Db;

  beforeAll(async () => {
    database = await createDatabase();
    db = await openPostgres({ url: database.url });
  });

  afterAll(async () => {
    await db.close();
    await database.drop();
  });

  test("has the tables, columns, keys and indexes of SQLite's, and no others", async () => {
    expect(await describePostgres(database)).toEqual(without(describeSqlite(), OF_ONE_NODE));
  });

  describe("keeps entries and checkpoints as they are:", () => {
    const zero = new Uint8Array(32);
    const leaf = new Uint8Array(32).fill(1);
    const ENTRY = "INSERT INTO ledger (workspace_id, seq, prev, leaf, bytes) VALUES ($1, $2, $3, $4, '{}')";
    const CHECKPOINT =
      "INSERT INTO ledger_checkpoints (workspace_id, size, note, created_at) VALUES (1, $1, 'note', 0)";

    beforeAll(async () => {
      await db.run("INSERT INTO workspaces (id, name, created_at) VALUES (1, 'a', 0), (2, 'b', 0)");
      await db.run(ENTRY, [1, 1, zero, leaf]);
      await db.run(CHECKPOINT, [1]);
    });

    test.each([
      ["an entry that leaves a gap", ENTRY, [1, 3, leaf, zero]],
      ["an entry that does not follow the last one", ENTRY, [1, 2, zero, zero]],
      ["a first entry that follows something", ENTRY, [2, 1, leaf, zero]],
      ["a second first entry", ENTRY, [1, 1, zero, zero]],
      ["a checkpoint that is not larger", CHECKPOINT, [1]],
    ])("%s is refused", async (_, sql, params) => {
      expect(await outcomes([db.run(sql, params)])).toEqual(["StoreUnavailable"]);
    });

    const CHANGES = ["UPDATE TABLE SET workspace_id = 1", "DELETE FROM TABLE", "TRUNCATE TABLE"].flatMap(
      (sql) => ["ledger", "ledger_checkpoints"].map((table) => sql.replace("TABLE", table)),
    );

    test.each(CHANGES)("the program may not %s", async (sql) => {
      expect((await outcomes([db.run(sql)]))[0]).toContain("permission denied");
    });

    test.each(CHANGES)("a trigger refuses a superuser's %s", async (sql) => {
      const [refused] = await outcomes([database.query(sql)]);
      expect(refused).toContain("are never changed or deleted");
    });

    test("and the next one is accepted", async () => {
      expect(await db.run(ENTRY, [1, 2, leaf, zero])).toBe(1);
      expect(await db.run(CHECKPOINT, [2])).toBe(1);
    });
  });
});
