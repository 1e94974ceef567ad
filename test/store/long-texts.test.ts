/**
 * A search in a table WITHOUT ROWID compares whole rows, so it reads the long texts on its way, even those of other
 * workspaces.
 */
import { Database } from "bun:sqlite";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { migrate } from "../../src/store/sqlite/migrate.ts";
import { LONG_TEXTS } from "../../src/store/sqlite/migrations/021-long-texts.ts";
import { MIGRATIONS, versionOf } from "../../src/store/sqlite/migrations/index.ts";
import { schemaOf } from "../../src/store/sqlite/schema.ts";
import { WITHOUT_LONG_TEXTS } from "../support/older-schema.ts";
import { tempDir } from "../support/process.ts";

/** The last columns of tables whose rows may be long. */
const LONG: Readonly<Record<string, string>> = {
  payloads: "body",
  tasks: "metadata",
  task_answers: "body",
  task_events: "frames",
  response_events: "frames",
  schedules: "prompt",
  usage_slots: "facts",
  meta: "value",
};

/** All texts of tables WITHOUT ROWID. None is longer than a name of 255 characters, except in the ledger: see the migration. */
const SHORT: Readonly<Record<string, string>> = {
  tokens: "id name scopes person role secret_hash previous_hash created_by tools_mode seal",
  tool_calls: "task_id id tool status",
  spending: "day",
  approvals: "task_id call_id agent tool arguments_hash status definition_hash",
  approval_votes: "task_id call_id person",
  responses: "id model",
  response_items: "id response_id",
  usage_counts: "kind name outcome",
  vault_metadata: "hash",
  vault_pending: "",
  idempotency_keys: "actor key fingerprint task_id",
  ledger: "prev leaf bytes",
  ledger_checkpoints: "note",
  ledger_index: "key bits",
  // Notices have ids, names and numbers, and errors are this program's own.
  webhook_deliveries: "id type body status last_error seal",
  sessions: "id token_id secret_hash user_agent seal",
};

const columnsOf = (database: Database, table: string) =>
  database
    .query<{ name: string; type: string }, [string]>("SELECT name, type FROM pragma_table_info(?)")
    .all(table);

describe("the schema", () => {
  let database: Database;
  beforeAll(() => {
    database = new Database(":memory:");
    migrate(database);
  });
  afterAll(() => database.close());

  test("stores no long text in a table WITHOUT ROWID", () => {
    const tables = database
      .query<{ name: string }, []>("SELECT name FROM pragma_table_list WHERE schema = 'main' AND wr = 1")
      .all();
    const found = tables.map(({ name: table }) => {
      const texts = columnsOf(database, table).filter(({ type }) => type === "TEXT" || type === "BLOB");
      return [table, texts.map(({ name }) => name).join(" ")] as const;
    });
    expect(Object.fromEntries(found)).toEqual(SHORT);
  });

  test.each(Object.entries(LONG))(
    "stores the long text of %s after all columns that are read without it",
    (table, column) => {
      expect(columnsOf(database, table).at(-1)?.name).toBe(column);
    },
  );
});

describe("the upgrade", () => {
  const directory = tempDir();
  let database: Database;
  beforeEach(() => {
    database = new Database(join(directory.path, `${crypto.randomUUID()}.db`));
    database.run("PRAGMA foreign_keys = ON");
    migrate(database, MIGRATIONS.slice(0, versionOf(LONG_TEXTS) - 1));
    for (const statement of ROWS) database.run(statement);
  });
  afterEach(() => database.close());
  afterAll(() => directory.remove());

  const TABLES = [...Object.keys(LONG), "tool_calls"];
  /** The rows of all tables, with their columns by name. */
  const rows = () =>
    Object.fromEntries(
      TABLES.map((table) => [table, database.query(`SELECT * FROM ${table} ORDER BY 1, 2, 3`).all()]),
    );

  test("keeps all rows with their seals, and the references between them", () => {
    const before = rows();
    expect(TABLES.filter((table) => before[table]?.length === 0)).toEqual([]);
    migrate(database);
    expect(rows()).toEqual(before);
    expect(database.query("PRAGMA foreign_key_check").all()).toEqual([]);
    expect(database.query("PRAGMA integrity_check").values()).toEqual([["ok"]]);
    expect(() => database.run("DELETE FROM tasks")).toThrow("FOREIGN KEY");
    expect(() => database.run("INSERT INTO payloads SELECT * FROM payloads")).toThrow("UNIQUE");
  });

  test("is one transaction: an upgrade that fails leaves the file as it was", () => {
    const before = rows();
    const broken = { name: "broken", sql: `${LONG_TEXTS.sql} INSERT INTO nowhere VALUES (1);` };
    expect(() => migrate(database, [...MIGRATIONS.slice(0, versionOf(LONG_TEXTS) - 1), broken])).toThrow(
      "nowhere",
    );
    expect(rows()).toEqual(before);
  });

  test("can be undone by tests", () => {
    migrate(database);
    database.run("PRAGMA foreign_keys = OFF");
    for (const statement of WITHOUT_LONG_TEXTS) database.run(statement);
    const found = database
      .query("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name")
      .all();
    expect(found).toEqual(schemaOf(versionOf(LONG_TEXTS) - 1));
  });
});

const ROWS = [
  "INSERT INTO workspaces (id, name, created_at) VALUES (1, 'w', 1)",
  `INSERT INTO agents (id, workspace_id, name, owner, memory_scope, tier_policy, tools, max_steps, status, version, created_at,
     updated_at) VALUES (1, 1, 'a', 'o', 'm', '{}', '[]', 1, 'active', 1, 1, 1)`,
  ...[1, 2].map(
    (
      n,
    ) => `INSERT INTO tasks (workspace_id, id, agent_id, agent, tier, tools, metadata, status, attempts, model, credits,
     input_tokens, output_tokens, steps, error_code, error_message, dispatch_seq, finish_seq, open_model_call, event_ceiling,
     created_by, created_at, started_at, finished_at, open_reserved, seal, input_form, continues)
     VALUES (1, 'task_${n}', 1, 'a', 2, '["t"]', '{"k":"v"}', 'failed', 3, 'm', 4, 5, 6, 7, 'c', 'why', 8, 9, 10, 11, 'tok', 12,
     13, ${n === 1 ? "NULL" : 14}, 15, x'01', 'json', 'task_0')`,
  ),
  `INSERT INTO tool_calls VALUES (1, 'task_1', 0, 'call', 'tool', 'done', 1, 2, 3, 4, 5)`,
  `INSERT INTO task_events VALUES (1, 'task_1', 1, 2, x'aabb')`,
  `INSERT INTO task_answers VALUES (1, 'task_1', 1, 'answer', x'02')`,
  `INSERT INTO response_events VALUES (1, 'resp', 1, 2, x'cc')`,
  `INSERT INTO payloads VALUES (1, 1, 'input', x'03', 'prompt', 4), (1, 1, 'output', x'05', 'answer', 6)`,
  `INSERT INTO schedules (workspace_id, id, name, agent, prompt, cron, timezone, tier, tools, metadata, missed, status, version,
     created_by, runs_as, created_at, updated_at, next_at, last_at, last_task, last_code, agent_id, seal)
     VALUES (1, 's', 'n', 'a', 'prompt', 'c', 'UTC', 1, '[]', '{}', 'skip', 'active', 2, 'me', 'tok', 3, 4, 5, 6, 't', 'ok', 1, x'06')`,
  `INSERT INTO usage_slots VALUES (1, 2, 3, 4, 5, '{}')`,
  `INSERT INTO meta (key, value, seal) VALUES ('k', 'v', x'07')`,
];
