/**
 * Changes to the rows of tasks by a person with the file, but without the keys, are neither carried out nor signed.
 */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { databasePath } from "../../src/store/directory.ts";
import { type FakeModel, startFakeModel } from "../support/fake-model.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { dispatch, ended, held, ledger, run, until, yamlOf } from "./support.ts";

setDefaultTimeout(60_000);

let upstream: FakeModel;
let gateway: TestGateway;
let yaml: string;
let directories: string[];
beforeEach(async () => {
  upstream = startFakeModel();
  yaml = yamlOf(upstream.url, {
    tiers: { 1: ["a"] },
    limits: { concurrent_tasks: 1, enforcement: "enforced" },
  });
  directories = [mkdtempSync(join(tmpdir(), "gatehouse-rows-"))];
  gateway = await startGateway({ isOnFiles: true, yaml, dataDir: directories[0] ?? "" });
  await gateway.agent("plain");
});
afterEach(async () => {
  await gateway.stop();
  await upstream.close();
  for (const each of directories) rmSync(each, { recursive: true, force: true });
});

/** Copies the files as they are now, lets somebody change the copy, and starts a gateway on it. */
async function crash(change: (file: Database) => void): Promise<void> {
  const next = mkdtempSync(join(tmpdir(), "gatehouse-rows-"));
  cpSync(gateway.dataDir, next, { recursive: true });
  await gateway.stop();
  directories.push(next);
  const file = new Database(databasePath(next));
  change(file);
  file.close();
  gateway = await startGateway({ isOnFiles: true, yaml, dataDir: next });
}

// biome-ignore lint/suspicious/noExplicitAny: rows as they are.
type AnyRow = Record<string, any>;

const rowOf = (file: Database, id: string) =>
  file.query<AnyRow, [string]>("SELECT * FROM tasks WHERE id = ?").get(id) ?? {};

function putBack(file: Database, row: AnyRow): void {
  const columns = Object.keys(row);
  const places = columns.map(() => "?").join(", ");
  file
    .query(`INSERT OR REPLACE INTO tasks (${columns.join(", ")}) VALUES (${places})`)
    .run(...Object.values(row));
}

const taskOf = async (id: string) => (await gateway.call("GET", `/v1/tasks/${id}`)).body;
const named = async () =>
  (await ledger(gateway)).filter(({ action }) => action === "store.row_changed").map(({ detail }) => detail);

/** Dispatches a task that waits behind another, which has the only slot. */
async function waiting(request: object = {}): Promise<{ readonly id: string; open(): void }> {
  const first = held();
  upstream.script("a", first.script);
  await dispatch(gateway, { agent: "plain", prompt: "first" });
  await first.asked;
  return { id: await dispatch(gateway, { agent: "plain", prompt: "second", ...request }), open: first.open };
}

describe("a task that was never dispatched", () => {
  test.each([
    ["queued", 0],
    ["running", 3],
    ["running", 1],
    ["awaiting_approval", 0],
  ])(
    "made up as %s, with %d attempts, is not run, and no entry contains the names in its row",
    async (status, attempts) => {
      const model = await run(gateway, { agent: "plain" });
      const asked = upstream.requests.length;
      const made = model.id.replace(/....$/, "zzzz");
      await crash((file) =>
        putBack(file, {
          ...rowOf(file, model.id),
          ...{ id: made, status, attempts, finished_at: null, finish_seq: null, created_by: "token:tok_ceo" },
          ...{ open_model_call: 3, open_reserved: 5_000_000 },
        }),
      );
      expect(await taskOf(made)).toMatchObject({ status: "failed", output: null });
      expect(upstream.requests.length).toBe(asked);
      const entries = await ledger(gateway);
      expect(entries.filter((entry) => JSON.stringify(entry).includes("tok_ceo"))).toEqual([]);
      expect(entries.filter(({ task, phase }) => task === made && phase !== "single")).toEqual([]);
      expect(await named()).toEqual([{ table: "tasks", row: `1/${made}` }]);
    },
  );

  test("with the rows of an ended task is not run again, and agrees with the ledger", async () => {
    const { id } = await run(gateway, { agent: "plain" });
    const asked = upstream.requests.length;
    await crash((file) =>
      file.query("UPDATE tasks SET status = 'queued', finished_at = NULL WHERE id = ?").run(id),
    );
    expect((await taskOf(id)).status).toBe("succeeded");
    expect(upstream.requests.length).toBe(asked);
  });

  test("with the rows of a failed task shows the reason for the failure again", async () => {
    upstream.script("a", { status: 401 });
    const { id, error } = await run(gateway, { agent: "plain" });
    const reopened = "status = 'queued', finished_at = NULL, error_code = NULL, error_message = NULL";
    await crash((file) => file.query(`UPDATE tasks SET ${reopened} WHERE id = ?`).run(id));
    expect(await taskOf(id)).toMatchObject({ status: "failed", error: { code: error.code } });
  });

  test("with its row from before it ended, including the seal, is not run again", async () => {
    const { id, open } = await waiting();
    const file = new Database(databasePath(gateway.dataDir), { readonly: true });
    const before = rowOf(file, id);
    file.close();
    open();
    await ended(gateway, id);
    const asked = upstream.requests.length;
    await crash((changed) => putBack(changed, before));
    expect((await taskOf(id)).status).toBe("succeeded");
    expect(upstream.requests.length).toBe(asked);
  });
});

describe("a waiting task ends as failed, in the name of its dispatcher, if someone has changed its", () => {
  test.each<[string, (file: Database, id: string) => void]>([
    ["prompt", (file) => file.exec("UPDATE payloads SET body = 'pay' WHERE body = 'second'")],
    ["tools", (file, id) => file.query(`UPDATE tasks SET tools = '["*"]' WHERE id = ?`).run(id)],
    ["actor", (file, id) => file.query("UPDATE tasks SET created_by = 'token:tok_ceo' WHERE id = ?").run(id)],
    ["agent", (file, id) => file.query("UPDATE tasks SET agent = 'boss' WHERE id = ?").run(id)],
    ["dispatch", (file, id) => file.query("UPDATE tasks SET dispatch_seq = 9999 WHERE id = ?").run(id)],
    ["seal", (file, id) => file.query("UPDATE tasks SET seal = NULL WHERE id = ?").run(id)],
    [
      "open call",
      (file, id) =>
        file
          .query("UPDATE tasks SET status = 'running', attempts = 1, open_model_call = 1 WHERE id = ?")
          .run(id),
    ],
    [
      "answer, by one that was made up",
      (file, id) =>
        file
          .query("INSERT INTO task_answers (workspace_id, task_id, step, body) VALUES (1, ?, 1, ?)")
          .run(id, JSON.stringify({ role: "assistant", text: "done", toolCalls: [] })),
    ],
  ])("%s", async (_, change) => {
    const { id } = await waiting();
    await crash((file) => change(file, id));
    await until(async () => (await taskOf(id)).status === "failed");
    const end = (await ledger(gateway)).filter(({ task, phase }) => task === id && phase === "outcome");
    expect(end).toMatchObject([{ outcome: "failed", code: "internal", agent: "plain", channel: "system" }]);
    const [intent] = (await ledger(gateway)).filter(({ task, phase }) => task === id && phase === "intent");
    expect([end[0]?.actor, end[0]?.ref]).toEqual([intent?.actor, intent?.seq]);
    expect(await named()).toContainEqual({ table: "tasks", row: `1/${id}` });
    expect(JSON.stringify(await ledger(gateway))).not.toContain("tok_ceo");
  });
});

test("untouched tasks continue after a crash, queued and running", async () => {
  const { id } = await waiting();
  upstream.script("a", { chunks: ["done"] });
  await crash(() => {});
  expect(await ended(gateway, id)).toMatchObject({ status: "succeeded", output: "done" });
  expect(await named()).toEqual([]);
});

test("a note that would erase quotes of a text erases nothing, and is not recorded as anyone's request", async () => {
  const { id } = await run(gateway, { agent: "plain", prompt: "keep this" });
  await crash((file) =>
    file.query("INSERT INTO meta (key, value) VALUES (?, ?)").run(
      "quoted/1/e/req_made",
      JSON.stringify({
        workspaceId: 1,
        document: "e",
        actor: "token:tok_ceo",
        requestId: "req_made",
        running: [],
      }),
    ),
  );
  expect((await taskOf(id)).prompt).toBe("keep this");
  await gateway.stop();
  const file = new Database(databasePath(gateway.dataDir));
  const entries = file.query<{ bytes: string }, []>("SELECT bytes FROM ledger").all();
  expect(entries.filter(({ bytes }) => bytes.includes("payload.erase") || bytes.includes("tok_ceo"))).toEqual(
    [],
  );
  file.close();
  gateway = await startGateway({ isOnFiles: true, yaml, dataDir: gateway.dataDir });
});

test("a call that was written into an old entry is neither recorded as lost nor charged", async () => {
  await gateway.agent("payer", { budget: { credits_per_day: 1000 } });
  // The first 256 entries have a tile, and the history of tokens extends beyond them: a start reads none of them.
  for (let n = 0; n < 300; n++) await gateway.call("GET", "/v1/agents");
  const { dataDir: before } = gateway;
  await gateway.stop();
  await (await startGateway({ isOnFiles: true, yaml, dataDir: before, acceptRows: () => {} })).stop();
  gateway = await startGateway({ isOnFiles: true, yaml, dataDir: before });
  await crash((file) => {
    const entry = file.query<{ bytes: string }, []>("SELECT bytes FROM ledger WHERE seq = 2").get();
    const { prev, ts } = JSON.parse(entry?.bytes ?? "{}") as { prev: string; ts: string };
    const forged = {
      ...{ action: "tool.call", actor: "token:tok_ceo", agent: "payer", channel: "rest" },
      ...{ detail: { price: 5_000_000 }, outcome: "allowed", phase: "intent", prev, seq: 2 },
      ...{ tool: "bank.transfer", ts },
    };
    file.exec("DROP TRIGGER ledger_no_update");
    file.query("UPDATE ledger SET bytes = ? WHERE workspace_id = 1 AND seq = 2").run(JSON.stringify(forged));
    file.exec("INSERT OR REPLACE INTO meta (key, value) VALUES ('calls_open_from:1', '1')");
  });
  const { dataDir } = gateway;
  await gateway.stop();
  const file = new Database(databasePath(dataDir));
  const found = file.query("SELECT seq FROM ledger WHERE bytes LIKE '%bank.transfer%'").all();
  expect(found).toEqual([{ seq: 2 }]);
  expect(file.query("SELECT credits FROM spending WHERE credits > 0").all()).toEqual([]);
  file.close();
  gateway = await startGateway({ isOnFiles: true, yaml, dataDir });
});

describe("a running task whose row was removed from those that are checked is found by the next start:", () => {
  const other = "(SELECT finish_seq FROM tasks WHERE finish_seq IS NOT NULL LIMIT 1)";
  const finished = `status = 'succeeded', finished_at = created_at + 1, finish_seq = ${other}`;

  /** A task whose model is asked, after another one has ended. */
  async function running(): Promise<{ readonly id: string; open(): void }> {
    upstream.script("a", { chunks: ["42 million"] });
    await run(gateway, { agent: "plain" });
    const first = held();
    upstream.script("a", first.script);
    const id = await dispatch(gateway, { agent: "plain", prompt: "second" });
    await first.asked;
    return { id, open: first.open };
  }

  const endsOf = async (id: string) =>
    (await ledger(gateway)).filter(
      ({ task, phase, action }) => task === id && phase === "outcome" && action === "task.dispatch",
    );

  test("marked as finished, without its seal, it ends as failed", async () => {
    const { id, open } = await running();
    await crash((file) => file.query(`UPDATE tasks SET ${finished}, seal = NULL WHERE id = ?`).run(id));
    open();
    await until(async () => (await taskOf(id)).status === "failed");
    expect(await taskOf(id)).toMatchObject({ output: null, error: { code: "internal" } });
    expect(await endsOf(id)).toMatchObject([{ outcome: "failed", agent: "plain", channel: "system" }]);
    expect(await named()).toContainEqual({ table: "tasks", row: `1/${id}` });
  });

  test("marked as finished, with its seal, it continues", async () => {
    const { id, open } = await running();
    await crash((file) => file.query(`UPDATE tasks SET ${finished} WHERE id = ?`).run(id));
    open();
    upstream.script("a", { chunks: ["done"] });
    expect(await ended(gateway, id)).toMatchObject({ status: "succeeded", output: "done" });
    expect(await endsOf(id)).toMatchObject([{ outcome: "succeeded" }]);
    expect(await named()).toContainEqual({ table: "tasks", row: `1/${id}` });
  });

  test("deleted, its end is in the ledger", async () => {
    const { id, open } = await running();
    await crash((file) => {
      file.exec("PRAGMA foreign_keys = OFF");
      file.query("DELETE FROM tasks WHERE id = ?").run(id);
    });
    open();
    expect(await endsOf(id)).toMatchObject([{ outcome: "failed", agent: "plain", channel: "system" }]);
    expect(await named()).toContainEqual({ table: "tasks", row: `1/${id}` });
  });
});
