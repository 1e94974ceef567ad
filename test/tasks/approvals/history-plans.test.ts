/** Queries of a long history of approvals neither scan nor sort it. */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import type { Sql, SqlValue } from "../../../src/store/db.ts";
import { openSqlite } from "../../../src/store/sqlite/open.ts";
import { type ApprovalFilter, chooseApprovals } from "../../../src/tasks/approvals/history.ts";
import { findApprovals } from "../../../src/tasks/approvals/rows.ts";
import { tempDir } from "../../support/process.ts";

const directory = tempDir();
const path = join(directory.path, "gatehouse.db");
let database: Database;
beforeAll(async () => {
  await openSqlite(path).close();
  database = new Database(path, { readonly: true });
});
afterAll(() => {
  database.close();
  directory.remove();
});

/** The query plan of the one statement that `ask` sends. */
async function planOf(ask: (sql: Pick<Sql, "all">) => Promise<unknown>): Promise<string> {
  const asked: string[] = [];
  await ask({
    async all(sql: string, _values?: readonly SqlValue[]) {
      asked.push(sql);
      return [];
    },
  });
  expect(asked).toHaveLength(1);
  return database
    .query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${asked[0]}`)
    .all()
    .map(({ detail }) => detail)
    .join("; ");
}

const STATUSES = [["denied"], ["approved", "denied", "expired"]] as const;
const FILTERS: readonly (readonly [index: string, filter: Omit<ApprovalFilter, "statuses">])[] = [
  ["approvals_by_status (workspace_id=? AND status=? AND pending_seq<?)", {}],
  ["approvals_by_agent (workspace_id=? AND agent=? AND status=? AND pending_seq<?)", { agent: "a" }],
  [
    "approvals_by_agent (workspace_id=? AND agent=? AND status=? AND pending_seq<?)",
    { agent: "a", agentId: 7 },
  ],
  ["approvals_by_tool (workspace_id=? AND tool=? AND status=? AND pending_seq<?)", { tool: "t" }],
  [
    "approvals_by_question (workspace_id=? AND agent=? AND tool=? AND status=? AND pending_seq<?)",
    { agent: "a", tool: "t" },
  ],
];

describe.each(STATUSES.map((statuses) => [statuses] as const))("of the statuses %j", (statuses) => {
  test.each(FILTERS)("it is read from %s, for a request with %j", async (index, filter) => {
    const plan = await planOf((sql) => chooseApprovals(sql, 1, { ...filter, statuses }, 51));
    expect(plan.split(index)).toHaveLength(statuses.length + 1);
    expect(plan).not.toMatch(/SCAN a|TEMP B-TREE/);
  });
});

test("waiting approvals are read from their own index", async () => {
  const plan = await planOf((sql) => chooseApprovals(sql, 1, { statuses: ["pending"] }, 51));
  expect(plan).toMatch(/approvals_(pending|by_status) \(workspace_id=\?.* AND pending_seq<\?\)/);
  expect(plan).not.toMatch(/SCAN a|TEMP B-TREE/);
});

test.each([{}, { agent: "a", tool: "t" }])("a task's are found by its key, with %j", async (filter) => {
  for (const statuses of STATUSES) {
    const plan = await planOf((sql) => chooseApprovals(sql, 1, { ...filter, statuses, task: "task_1" }, 51));
    expect(plan).toContain("SEARCH a USING PRIMARY KEY (workspace_id=? AND task_id=?)");
  }
});

test("the rows of a page are found by their keys", async () => {
  const named = ["1", "2"].map((taskId) => ({ taskId, callId: "call_1" }));
  const plan = await planOf((sql) => findApprovals(sql, 1, named));
  expect(plan).toContain("SEARCH a USING PRIMARY KEY (workspace_id=? AND task_id=? AND call_id=?)");
});
