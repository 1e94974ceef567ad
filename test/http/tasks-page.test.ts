import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import type { Db } from "../../src/store/db.ts";
import { PAGE_BYTES } from "../../src/store/page-bytes.ts";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import { chooseTasks } from "../../src/tasks/rows/task-ids.ts";
import { TASK_STATUSES } from "../../src/tasks/task.ts";
import { finishedTask } from "../access/routes.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { tempDir } from "../support/process.ts";
import { SEALS } from "../support/seals.ts";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.stop());

const list = async (query: string, token = gateway.admin) => {
  const { body } = await gateway.call("GET", `/v1/tasks${query}`, { token });
  return body as { data: { id: string; prompt: string }[]; next_cursor: string | null };
};

test("a page ends when its texts become too large, and the next one continues", async () => {
  await gateway.agent("long");
  const ids: string[] = [];
  for (let index = 0; index < 9; index++) {
    ids.unshift(await finishedTask(gateway, "long", `${index}${"x".repeat(999_999)}`));
  }
  const seen: string[] = [];
  let cursor: string | null = null;
  let pages = 0;
  do {
    const page = await list(`?agent=long&limit=200${cursor === null ? "" : `&cursor=${cursor}`}`);
    expect(page.data.length).toBeGreaterThan(0);
    const bytes = page.data.reduce((sum, task) => sum + task.prompt.length, 0);
    expect(bytes).toBeLessThanOrEqual(PAGE_BYTES);
    seen.push(...page.data.map(({ id }) => id));
    cursor = page.next_cursor;
    pages++;
  } while (cursor !== null);
  expect(seen).toEqual(ids);
  expect(pages).toBeGreaterThan(1);
});

test("one task above the budget is a page of its own", async () => {
  await gateway.agent("wide");
  const wide = "\u{1f600}".repeat(500_000);
  const last = await finishedTask(gateway, "wide", "short");
  const ids = [last];
  for (let index = 0; index < 3; index++) ids.unshift(await finishedTask(gateway, "wide", wide + wide));
  for (let page = await list("?agent=wide"); ; page = await list(`?agent=wide&cursor=${page.next_cursor}`)) {
    expect(page.data.map(({ id }) => id)).toEqual(ids.splice(0, page.data.length));
    expect(page.data.length).toBeGreaterThan(0);
    if (page.next_cursor === null) break;
  }
  expect(ids).toEqual([]);
});

test("a reused name lists the tasks of both agents, but only its own for the new one's token", async () => {
  const ids: string[] = [];
  await gateway.agent("again");
  for (let index = 0; index < 3; index++) ids.unshift(await finishedTask(gateway, "again"));
  await gateway.call("DELETE", "/v1/agents/again");
  await gateway.agent("again");
  for (let index = 0; index < 2; index++) ids.unshift(await finishedTask(gateway, "again"));
  const token = await gateway.token({ agent: "again" });
  const idsOf = async (query: string, as?: string) => (await list(query, as)).data.map(({ id }) => id);
  expect(await idsOf("?agent=again")).toEqual(ids);
  expect(await idsOf("?agent=again&status=succeeded")).toEqual(ids);
  expect(await idsOf("", token)).toEqual(ids.slice(0, 2));
  expect(await idsOf("?agent=again&status=succeeded", token)).toEqual(ids.slice(0, 2));
  const first = await list("?agent=again&limit=3");
  expect(await idsOf(`?agent=again&limit=3&cursor=${first.next_cursor}`)).toEqual(ids.slice(3));
});

describe("each combination of filters is answered from an index, without a sort", () => {
  const directory = tempDir();
  const path = join(directory.path, "gatehouse.db");
  const asked: string[] = [];
  let db: Db;
  beforeAll(async () => {
    const opened = openSqlite(path, { seals: SEALS });
    db = {
      ...opened,
      get: opened.get.bind(opened),
      run: opened.run.bind(opened),
      tx: opened.tx.bind(opened),
      close: opened.close.bind(opened),
      all(sql, params) {
        asked.push(sql);
        return opened.all(sql, params);
      },
    };
    await db.run("INSERT INTO workspaces (id, name, created_at) VALUES (1, 'w', 0)");
  });
  afterAll(async () => {
    await db.close();
    directory.remove();
  });

  test.each([undefined, ...TASK_STATUSES].flatMap((status) => [{ status }, { status, agentId: 7 }]))(
    "%j",
    async (filter) => {
      asked.length = 0;
      await chooseTasks(db, 1, filter, 10, undefined);
      const [sql = ""] = asked;
      const database = new Database(path, { readonly: true });
      const plan = database
        .query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${sql}`)
        .all()
        .map(({ detail }) => detail)
        .join("; ");
      database.close();
      expect(plan).not.toMatch(/SCAN|TEMP B-TREE/);
      const { status } = filter;
      const agent = "agentId" in filter;
      const open = status === "queued" || status === "running" || status === "awaiting_approval";
      const index = open
        ? "tasks_open"
        : status === undefined
          ? agent
            ? "tasks_by_agent"
            : "sqlite_autoindex_tasks_1"
          : agent
            ? "tasks_ended_by_agent"
            : "tasks_ended";
      expect(plan).toContain(`${index} (`);
    },
  );
});
