/**
 * No statement reads a table that grows with history as a whole, apart from those listed here. A gateway is used in
 * every way that reads or writes rows, each of which must succeed, and started again. The vault's threads have their
 * own test (test/vault/plans.test.ts). The same statements show that the rooms write SQL that PostgreSQL takes as well.
 */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, setDefaultTimeout, spyOn, test } from "bun:test";
import { databasePath } from "../../../src/store/directory.ts";
import { openPostgres } from "../../../src/store/postgres/open.ts";
import { type FakeReceiver, startReceiver } from "../../notify/support.ts";
import { type FakeModel, startFakeModel } from "../../support/fake-model.ts";
import { startGateway, type TestGateway } from "../../support/gateway.ts";
import { createDatabase, missingPostgres } from "../../support/postgres/database.ts";
import { tempDir } from "../../support/process.ts";
import { until } from "../../support/until.ts";
import { dispatch, ended, yamlOf } from "../../tasks/support.ts";
import { growingSteps } from "./plans.ts";

setDefaultTimeout(60_000);

/** Statements that may read all rows, each with the reason. */
const ALLOWED: Readonly<Record<string, RegExp>> = {
  "Each start counts the checkpoints, in case one was removed: 12 ms for 10 million entries.":
    /^SELECT COUNT\(\*\) AS stored FROM ledger_checkpoints WHERE workspace_id = \$1$/,
  "Each start compares tokens with the ledger, which no index may hide. People issue them, one by one.":
    /FROM tokens WHERE \+workspace_id = \$1 AND \+revoked_at IS NULL$/,
  "Each start looks once for scopes whose segments were not merged, in an index with about one row per scope.":
    /FROM vault_scopes AS s JOIN vault_segments AS g ON .* GROUP BY s\.id HAVING count\(\*\) > 1$/,
  "Each start reads the entries after the last whole tile: fewer than 256.":
    /^SELECT seq, leaf, bytes FROM ledger WHERE workspace_id = \$1 AND seq > \$2 ORDER BY seq$/,
  "A deletion by age reads only what it deletes.":
    /^DELETE FROM (sessions|idempotency_keys) WHERE .* (expires_at|created_at) <= \$1 LIMIT \$2\)$/,
  "The statistics name every agent that was ever paid for. They are only read by people.":
    /FROM \(SELECT id, name FROM agents WHERE workspace_id = \$1 UNION ALL/,
};

/** Statements of SQLite only, each with the reason. */
const OF_SQLITE: Readonly<Record<string, RegExp>> = {
  "The tables of vectors are sqlite-vec's own. They are partitioned by scope.": /vault_vectors_/,
  "The highest key that a table has ever had.": /\bsqlite_sequence\b/,
};

const asked = new Set<string>();
let dir: ReturnType<typeof tempDir>;
let model: FakeModel;
let receiver: FakeReceiver;

beforeAll(async () => {
  dir = tempDir();
  model = startFakeModel();
  receiver = startReceiver();
  const prepared = spyOn(Database.prototype, "prepare");
  await useEverything();
  for (const [sql] of prepared.mock.calls) {
    asked.add(
      sql
        .replace(/\?(\d+)/g, "$$$1")
        .replace(/\s+/g, " ")
        .trim(),
    );
  }
  prepared.mockRestore();
});
afterAll(async () => {
  await receiver.close();
  await model.close();
  dir.remove();
});

/** A store with several nodes has no such tables. */
const OF_ONE_NODE = /\bledger_(node_)?heads\b/;

test("no statement reads all of a table that grows with history", () => {
  const database = new Database(databasePath(dir.path), { readonly: true });
  const growing = statements()
    .filter((sql) => !Object.values(ALLOWED).some((allowed) => allowed.test(sql)))
    .flatMap((sql) => growingSteps(database, sql).map((step) => `${step}: ${sql}`));
  database.close();
  expect(growing).toEqual([]);
});

test("every exception is a statement that is still there", () => {
  for (const [reason, allowed] of Object.entries(ALLOWED)) {
    expect([reason, [...asked].some((sql) => allowed.test(sql))]).toEqual([reason, true]);
  }
});

test.skipIf(missingPostgres !== undefined)("PostgreSQL prepares every statement", async () => {
  const database = await createDatabase();
  const db = await openPostgres({ url: database.url });
  const refused: string[] = [];
  for (const sql of statements().filter((each) => !OF_ONE_NODE.test(each))) {
    // Prepared and not executed, by the only connection of the transaction.
    await db
      .tx(null, (tx) => tx.run(`PREPARE statement AS ${sql}; DEALLOCATE statement`))
      .catch((error: unknown) => refused.push(`${String(error)}: ${sql}`));
  }
  await db.close();
  await database.drop();
  expect(refused).toEqual([]);
});

/** What the rooms ask for, without what only SQLite is asked. */
function statements(): string[] {
  const isCommon = (sql: string) => !Object.values(OF_SQLITE).some((special) => special.test(sql));
  return [...asked].filter((sql) => /^(SELECT|UPDATE|DELETE|INSERT|WITH)\b/.test(sql) && isCommon(sql));
}

async function useEverything(): Promise<void> {
  const yaml = `${yamlOf(model.url, { tiers: { 1: ["a"] }, prices: { a: [1, 1] } })}notify: { webhook: "${receiver.url}" }\n`;
  model.script("a", ({ body: { tools, messages } }) =>
    tools && messages.at(-1)?.role !== "tool"
      ? { toolCalls: [{ name: "time__now", arguments: {} }] }
      : { chunks: ["done"] },
  );
  const gateway = await startGateway({ dataDir: dir.path, yaml });
  const task = await work(gateway);
  const ids = await others(gateway, task);
  await readEverything(gateway, { ...ids, task });
  const waiting = await dispatch(gateway, { agent: "careful", tools: ["time.now"] });
  await until(async () => (await statusOf(gateway, waiting)) === "awaiting_approval");
  await gateway.stop();
  // Continues with an unfinished task, ended tokens and texts that may have expired.
  const again = await startGateway({ dataDir: dir.path });
  await again.stop();
}

async function statusOf(gateway: TestGateway, id: string): Promise<string> {
  return (await must(gateway, "GET", `/v1/tasks/${id}`)).status;
}

/** @returns the id of a task that has ended */
async function work(gateway: TestGateway): Promise<string> {
  const post = (path: string, body: object) => must(gateway, "POST", path, body);
  await must(gateway, "PATCH", "/v1/workspace", { budget: { credits_per_month: 1_000 } });
  await gateway.agent("quick", { budget: { credits_per_day: 100 } });
  await gateway.agent("careful", { approvals: ["*"] });
  const task = await dispatch(
    gateway,
    { agent: "quick", tools: ["time.now"] },
    { headers: { "idempotency-key": "k" } },
  );
  await ended(gateway, task);
  await ended(gateway, await dispatch(gateway, { agent: "quick", continues: task, prompt: "and?" }));
  const asking = await dispatch(gateway, { agent: "careful", tools: ["time.now"] });
  await until(async () => (await statusOf(gateway, asking)) === "awaiting_approval");
  const [approval] = (await must(gateway, "GET", "/v1/approvals")).data;
  await post(`/v1/tasks/${asking}/approvals/${approval.call_id}`, {
    ...{ decision: "approve", reason: "fine", arguments_hash: approval.arguments_hash },
  });
  await ended(gateway, asking);
  const cancelled = await dispatch(gateway, { agent: "careful", tools: ["time.now"] });
  await must(gateway, "POST", `/v1/tasks/${cancelled}/cancel`);
  await post("/v1/tools/time.now/call", {});
  const messages = [{ role: "user", content: "hi" }];
  await post("/v1/chat/completions", { model: "up/a", messages });
  await post("/v1/messages", { model: "up/a", max_tokens: 9, messages });
  await post("/v1/responses", { model: "up/a", input: "hi" });
  await must(gateway, "POST", "/v1/agents/careful/stop", {});
  await must(gateway, "POST", "/v1/agents/careful/resume", {});
  return task;
}

interface Ids {
  /** The entry of a client's model call. */
  readonly entry: number;
  readonly document: string;
  readonly schedule: string;
  readonly response: string;
}

async function others(gateway: TestGateway, task: string): Promise<Ids> {
  const post = async (path: string, body: object) => (await must(gateway, "POST", path, body)).id as string;
  const document = await post("/v1/vault/documents", { title: "t", text: "some words", scope: "support" });
  await post("/v1/vault/search", { query: "words" });
  const removed = await post("/v1/vault/documents", { title: "t", text: "other words", scope: "support" });
  await must(gateway, "DELETE", `/v1/vault/documents/${removed}`);
  const schedule = await post("/v1/schedules", {
    name: "s",
    agent: "quick",
    prompt: "hi",
    cron: "0 0 1 1 *",
  });
  const token = await post("/v1/tokens", { name: "given", agent: "quick" });
  await post(`/v1/tokens/${token}/rotate`, {});
  await must(gateway, "DELETE", `/v1/tokens/${token}`);
  const response = await post("/v1/responses", { model: "up/a", input: "hi", background: true });
  await until(async () => (await must(gateway, "GET", `/v1/responses/${response}`)).status === "completed");
  const { data } = await must(gateway, "GET", "/v1/ledger?action=task.dispatch");
  const dispatched = data.find((entry: { task?: string }) => entry.task === task);
  await must(gateway, "DELETE", `/v1/ledger/${dispatched.seq}/payload`);
  const called = await must(gateway, "GET", "/v1/ledger?action=model.call&outside_tasks=true");
  return { entry: called.data[0].seq, document, schedule, response };
}

/** Every GET of the documented interface, and lists with each of their filters. */
async function readEverything(gateway: TestGateway, ids: Ids & { readonly task: string }): Promise<void> {
  const { paths } = (await must(gateway, "GET", "/openapi.json")) as { paths: Record<string, Operations> };
  for (const [path, { get }] of Object.entries(paths)) {
    if (!get || STREAMS.test(path)) continue;
    const one = path.replace(/\{(\w+)\}/g, (_, name) => String(pathValue(path, name, ids)));
    const query = (get.parameters ?? []).filter((parameter) => parameter.in === "query");
    const needed = query.filter(({ required }) => required).map(({ name }) => pair(path, name));
    await must(gateway, "GET", `${one}?${needed.join("&")}`);
    for (const { name, required } of query) {
      if (required || filterOf(path, name) === undefined) continue;
      await must(gateway, "GET", `${one}?${[...needed, pair(path, name)].join("&")}`);
    }
  }
}

interface Operations {
  readonly get?: { readonly parameters?: readonly Parameter[] };
}

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
}

/** They would not end. */
const STREAMS = /^\/v1\/events$|^\/mcp|\/sse$/;
const FILTERS: Readonly<Record<string, string>> = {
  ...{ agent: "quick", status: "succeeded", action: "task.dispatch", tool: "time.now", order: "desc" },
  ...{ from: "2026-01-01T00:00:00Z", scope: "support", source_uri: "none", actor: "system", tier: "1" },
  ...{ outside_tasks: "true", date: "2026-01-01", by: "agent", step: "1d" },
};
/** Where a filter of that name has other values. */
const OWN_FILTERS: Readonly<Record<string, string>> = {
  "/v1/approvals status": "decided",
  "/v1/ledger/consistency from": "2",
  "/v1/usage from": new Date(Date.now() - 86_400_000).toISOString(),
};

function filterOf(path: string, name: string): string | undefined {
  return OWN_FILTERS[`${path} ${name}`] ?? FILTERS[name];
}

function pair(path: string, name: string): string {
  return `${name}=${encodeURIComponent(filterOf(path, name) ?? "")}`;
}

function pathValue(path: string, name: string, ids: Ids & { readonly task: string }): string | number {
  if (name === "seq") return ids.entry;
  if (name === "name") return "quick";
  if (path.includes("/documents")) return ids.document;
  if (path.includes("/schedules")) return ids.schedule;
  if (path.includes("/models")) return "up/a";
  return path.includes("/responses") ? ids.response : ids.task;
}

/** The body of an answer that is not an error: an error explains no statement. */
async function must(gateway: TestGateway, method: string, path: string, body?: object) {
  const answer = await gateway.call(method, path, body === undefined ? {} : { body });
  if (answer.status >= 300)
    throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body ?? {};
}
