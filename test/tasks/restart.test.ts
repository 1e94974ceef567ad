import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { databasePath } from "../../src/store/directory.ts";
import { addConnector } from "../mcp/support.ts";
import { allEvents, outline, type ReadEvent, readEvents } from "../support/events.ts";
import { type FakeModel, startFakeModel } from "../support/fake-model.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { ownConnection } from "../support/own-connection.ts";
import { startScriptedMcp } from "../support/scripted-mcp.ts";
import { remove, write } from "../support/vault.ts";
import { dispatch, ended, held, ledger, openEvents, unsettled, until, yamlOf } from "./support.ts";

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
  directories = [directory()];
  gateway = await startGateway({ isOnFiles: true, yaml, dataDir: directories[0] ?? "" });
  await gateway.agent("plain");
});
afterEach(async () => {
  await gateway.stop();
  await upstream.close();
  for (const each of directories) rmSync(each, { recursive: true, force: true });
});

function directory(): string {
  return mkdtempSync(join(tmpdir(), "gatehouse-restart-"));
}

/** Stops the process as an operator does, and starts another. */
async function restart(): Promise<void> {
  await gateway.stop();
  gateway = await startGateway({ isOnFiles: true, yaml, dataDir: directories.at(-1) ?? "" });
}

/** Starts a process on the files as they are now, as if this one had been killed. */
async function crash(
  change: (database: Database) => void = () => {},
  opened: (dataDir: string) => void = () => {},
): Promise<void> {
  const next = directory();
  cpSync(gateway.dataDir, next, { recursive: true });
  await gateway.stop();
  const database = new Database(databasePath(next));
  change(database);
  database.close();
  directories.push(next);
  gateway = await startGateway({ isOnFiles: true, yaml, dataDir: next, opened });
}

/**
 * Makes the update that would run a queued task, or this one, fail in this process. A start would refuse such a
 * trigger in the file.
 */
function holdQueued(dataDir: string, id = "%"): void {
  ownConnection(dataDir).run(
    `CREATE TEMP TRIGGER held BEFORE UPDATE OF status ON main.tasks WHEN OLD.status = 'queued' AND NEW.status <> 'queued'
       AND OLD.id LIKE '${id}'
     BEGIN SELECT RAISE(ABORT, 'full'); END`,
  );
}

function readUntil(id: string, text: string): Promise<ReadEvent[]> {
  return readUntilEvent(id, ({ data }) => String(data.text).endsWith(text));
}

async function readUntilEvent(id: string, isLast: (event: ReadEvent) => boolean): Promise<ReadEvent[]> {
  const seen: ReadEvent[] = [];
  for await (const event of readEvents(await openEvents(gateway, id))) {
    seen.push(event);
    if (isLast(event)) break;
  }
  return seen;
}

const names = (events: readonly ReadEvent[]) => events.map(({ event }) => event);
const WAYS = [
  ["an orderly stop", restart],
  ["a crash", crash],
] as const;

describe.each(WAYS)("after %s", (_name, again) => {
  test("waiting tasks run, and a task without tool calls runs again, with event ids above all those already sent", async () => {
    const hold = held({ chunks: ["lost ", "words"] });
    upstream.script("a", hold.script);
    const first = await dispatch(gateway, { agent: "plain" });
    const second = await dispatch(gateway, { agent: "plain", prompt: "second" });
    const seen = await readUntil(first, "words");
    const sent = seen.at(-1)?.id ?? 0;

    upstream.script("a", ({ body }) => ({ chunks: [String(body.messages.at(-1)?.content), "!"] }));
    await again();
    const task = await ended(gateway, first);
    expect(task).toMatchObject({ status: "succeeded", output: "hi!", usage: { steps: 1 } });
    expect(await ended(gateway, second)).toMatchObject({ status: "succeeded", output: "second!" });

    const rest = await allEvents(await openEvents(gateway, first, { "last-event-id": String(sent) }));
    expect(outline(rest).slice(-4)).toEqual([
      "task.started",
      "output.reset",
      "output.delta",
      "task.finished",
    ]);
    const restarted = rest.findLastIndex(({ event }) => event === "task.started");
    const fresh = rest.slice(restarted).map(({ id }) => id);
    const [start = 0] = fresh;
    expect(start).toBeGreaterThan(sent);
    expect(fresh).toEqual(fresh.map((_id, index) => start + index));
    expect(rest.at(-1)?.data).toEqual(task);
    const all = (await allEvents(await openEvents(gateway, first))).map(({ id }) => id);
    expect(all).toEqual([...new Set(all)].sort((a, b) => a - b));
    expect(unsettled(await ledger(gateway))).toEqual([]);
  });

  test("a task that had called a tool continues from there, and does not call it twice", async () => {
    const hold = held({ chunks: ["after the tool"] });
    upstream.script("a", (request, call) => {
      if (call === 0) return { toolCalls: [{ name: "time__now", arguments: {} }] };
      if (call > 1) return { chunks: ["told by it"] };
      return typeof hold.script === "function" ? hold.script(request, call) : hold.script;
    });
    const id = await dispatch(gateway, { agent: "plain", tools: ["time.now"] });
    const sent = (await readUntil(id, "after the tool")).at(-1)?.id ?? 0;
    const asked = upstream.requests.length;
    await again();
    const task = await ended(gateway, id);
    expect(task).toMatchObject({ status: "succeeded", output: "told by it", error: null });
    expect(task.tools_called).toMatchObject([{ tool: "time.now", status: "succeeded" }]);
    expect(upstream.requests.length).toBe(asked + 1);
    const roles = upstream.requests.at(-1)?.body.messages.map(({ role }: { role: string }) => role);
    expect(roles).toEqual(["user", "assistant", "tool"]);
    const rest = await allEvents(await openEvents(gateway, id, { "last-event-id": String(sent) }));
    expect(names(rest)).toEqual(["task.started", "output.reset", "output.delta", "task.finished"]);
    expect(rest[0]?.id).toBeGreaterThan(sent);
    expect(rest.at(-1)?.data).toEqual(task);
    expect(unsettled(await ledger(gateway))).toEqual([]);
  });

  test("an idempotency key still returns the first task", async () => {
    upstream.script("a", { chunks: ["ok"] });
    // The environment's first token is different after each start.
    const token = await gateway.token({ scopes: ["tasks:write", "tasks:read"] });
    const request = { token, body: { agent: "plain", prompt: "hi" }, headers: { "idempotency-key": "k" } };
    const first = await gateway.call("POST", "/v1/tasks", request);
    await ended(gateway, first.body.id);
    await again();
    const replay = await gateway.call("POST", "/v1/tasks", request);
    expect([replay.status, replay.body.id]).toEqual([202, first.body.id]);
    expect(replay.headers.get("idempotency-replayed")).toBe("true");
  });
});

test("a task during which the process died three times is not retried", async () => {
  const holds = Array.from({ length: 3 }, () => held({ chunks: ["x"] }));
  upstream.script("a", (request, call) => {
    const script = holds[call]?.script;
    return typeof script === "function" ? script(request, call) : {};
  });
  const id = await dispatch(gateway, { agent: "plain" });
  for (const { asked } of holds) {
    await asked;
    await crash();
  }
  expect(await ended(gateway, id)).toMatchObject({ status: "failed", error: { code: "interrupted" } });
  expect(upstream.requests.length).toBe(3);
  expect(unsettled(await ledger(gateway))).toEqual([]);
});

test("orderly stops do not count against a task, however many there are", async () => {
  const holds = Array.from({ length: 4 }, () => held({ chunks: ["x"] }));
  upstream.script("a", (request, call) => {
    const script = holds[call]?.script;
    return typeof script === "function" ? script(request, call) : { chunks: ["done"] };
  });
  const id = await dispatch(gateway, { agent: "plain" });
  for (const { asked } of holds) {
    await asked;
    await restart();
  }
  expect(await ended(gateway, id)).toMatchObject({ status: "succeeded", output: "done" });
  expect(unsettled(await ledger(gateway))).toEqual([]);
});

test("tasks of a stopped agent are cancelled, although the process died before it could do so", async () => {
  const hold = held();
  upstream.script("a", hold.script);
  const ids = [await dispatch(gateway, { agent: "plain" }), await dispatch(gateway, { agent: "plain" })];
  await hold.asked;
  await crash((database) => {
    database.run("UPDATE agents SET status = 'stopped'");
  });
  for (const id of ids) {
    expect(await ended(gateway, id)).toMatchObject({ status: "cancelled", error: { code: "agent_stopped" } });
  }
  expect(upstream.requests.length).toBe(1);
  expect(unsettled(await ledger(gateway))).toEqual([]);
});

test("a stop ends open streams without a false task.finished", async () => {
  const hold = held({ chunks: ["half"] });
  upstream.script("a", hold.script);
  const id = await dispatch(gateway, { agent: "plain" });
  const reading = allEvents(await openEvents(gateway, id));
  await hold.asked;
  upstream.script("a", { chunks: ["whole"] });
  await restart();
  expect(names(await reading)).not.toContain("task.finished");
  expect((await ended(gateway, id)).output).toBe("whole");
});

test("ids are not reused if the next process dies before the task's first call", async () => {
  const mcp = startScriptedMcp(["slow"]);
  try {
    mcp.answer(() => new Promise(() => {}));
    await addConnector(gateway, "files", mcp.url);
    upstream.script("a", (_request, call) =>
      call === 0
        ? {
            toolCalls: [
              { name: "files__slow", arguments: {} },
              { name: "made_up", arguments: {} },
            ],
          }
        : { chunks: ["done"] },
    );
    const id = await dispatch(gateway, { agent: "plain", tools: ["files.slow"] });
    await until(() => mcp.calls.length === 1);
    // The second process stores the refused call and nothing after it: the update that would run the task again
    // fails.
    await crash(() => {}, holdQueued);
    const task = async () => (await gateway.call("GET", `/v1/tasks/${id}`)).body;
    await until(async () => (await task()).tools_called.length === 2);
    const seen = await readUntilEvent(
      id,
      ({ event, data }) => event === "tool.result" && data.status === "denied",
    );
    await crash();

    expect(await ended(gateway, id)).toMatchObject({
      status: "succeeded",
      output: "done",
      tools_called: [{ status: "unknown" }, { status: "denied" }],
    });
    const last = String(seen.at(-1)?.id ?? 0);
    const rest = await allEvents(await openEvents(gateway, id, { "last-event-id": last }));
    expect(outline(rest).slice(-2)).toEqual(["output.delta", "task.finished"]);
    const all = (await allEvents(await openEvents(gateway, id))).map((event) => event.id);
    expect(all).toEqual([...new Set(all)].toSorted((a, b) => a - b));
  } finally {
    await mcp.close();
  }
});

test("ids are not reused if several processes die in turn before the task begins", async () => {
  const hold = held();
  upstream.script("a", hold.script);
  await dispatch(gateway, { agent: "plain" });
  await hold.asked;
  const id = await dispatch(gateway, { agent: "plain" });
  // A task whose row was changed ends as failed: the other one is next.
  await crash(
    (database) => void database.run("UPDATE tasks SET tools = '[\"*\"]' WHERE status = 'running'"),
    (dataDir) => holdQueued(dataDir, id),
  );
  const [created, started] = await readUntilEvent(id, ({ event }) => event === "task.started");
  expect([created?.event, started?.event]).toEqual(["task.created", "task.started"]);
  upstream.script("a", { chunks: ["done"] });
  await crash();
  expect((await ended(gateway, id)).status).toBe("succeeded");
  const rest = await allEvents(await openEvents(gateway, id, { "last-event-id": String(started?.id) }));
  expect(outline(rest.filter(({ event }) => event !== "output.reset"))).toEqual([
    "task.started",
    "output.delta",
    "task.finished",
  ]);
});

describe("a final answer that was saved before the process died is the output, although", () => {
  const OUTPUTS = [
    ["text", {}, "The quagga."],
    ["JSON", { output_schema: { type: "object", required: ["animal"] } }, '{"animal":"quagga"}'],
  ] as const;

  /** Lets the task's end fail in this process, and waits until its answer is in the file. */
  async function answered(request: object, output: string): Promise<string> {
    upstream.script("a", { chunks: [output] });
    const file = ownConnection(gateway.dataDir);
    file.run(
      `CREATE TEMP TRIGGER unfinished BEFORE UPDATE OF finished_at ON main.tasks
       BEGIN SELECT RAISE(ABORT, 'full'); END`,
    );
    const id = await dispatch(gateway, { agent: "plain", ...request });
    await until(() => file.query("SELECT 1 FROM task_answers WHERE task_id = ?").get(id) !== null);
    return id;
  }

  test.each(OUTPUTS)("the document of its question is gone: %s", async (_name, form, output) => {
    const document = await write(gateway, { title: "Crates", text: "The quagga sleeps." });
    const messages = [{ role: "user", content: [{ type: "file", document: document.id }] }];
    const id = await answered({ prompt: undefined, messages, ...form }, output);
    await remove(gateway, document.id);
    await crash();
    expect(await ended(gateway, id)).toMatchObject({ status: "succeeded", output, error: null });
    expect(upstream.requests).toHaveLength(1);
    expect((await allEvents(await openEvents(gateway, id))).at(-2)).toMatchObject({
      event: "output.delta",
      data: { text: output },
    });
    expect(unsettled(await ledger(gateway))).toEqual([]);
  });

  test.each(OUTPUTS)("no model of its tier is left: %s", async (_name, form, output) => {
    const id = await answered(form, output);
    yaml = yamlOf(upstream.url, { tiers: { 2: ["b"] } });
    await crash();
    expect(await ended(gateway, id)).toMatchObject({ status: "succeeded", output, error: null });
    expect(upstream.requests).toHaveLength(1);
    expect(unsettled(await ledger(gateway))).toEqual([]);
  });
});
