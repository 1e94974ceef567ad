/**
 * A server whose disk fills up, is freed and fills up again, while it is killed and restarted. The guarantees for one
 * process hold across all of them.
 */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { chainFaults } from "../ledger/support.ts";
import { type FakeModel, startFakeModel } from "../support/fake-model.ts";
import { type ServerProcess, serve } from "../support/process.ts";
import { type SmallDisk, smallDisk } from "../support/small-disk.ts";
import { held, until } from "../tasks/support.ts";
import { type Entry, readFile, seeded, settings, unsettled } from "./support.ts";

setDefaultTimeout(60_000);

let disk: SmallDisk;
let data: string;
let fake: FakeModel;
let server: ServerProcess;

beforeEach(async () => {
  disk = smallDisk();
  data = join(disk.path, "gatehouse-data");
  fake = startFakeModel();
  mkdirSync(data, { mode: 0o700 });
  writeFileSync(join(data, "gatehouse.yaml"), settings(fake));
  await start();
  await call("POST", "/v1/agents", { name: "helper", owner: "tests", memory_scope: "/" });
});

afterEach(async () => {
  await server.end("SIGKILL");
  await fake.close();
  disk.remove();
});

async function start(): Promise<void> {
  server = await serve(["--data", data], { cwd: disk.path });
}

/** Ends the server, frees the disk and starts another server. */
async function restart(signal: "SIGTERM" | "SIGKILL"): Promise<void> {
  const code = await server.end(signal);
  expect(code).toBe(signal === "SIGTERM" ? 0 : null);
  disk.free();
  await start();
}

interface Answer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary JSON.
  readonly body: any;
}

async function call(method: string, path: string, body?: object, headers = {}): Promise<Answer> {
  const token = readFileSync(join(data, "admin.token"), "utf8").trim();
  const response = await fetch(server.url + path, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: await response.json() };
}

const isWritable = async () => (await call("GET", "/v1/agents")).status === 200;

async function fill(): Promise<void> {
  disk.fill(server.pid);
  await until(async () => !(await isWritable()));
}

async function free(): Promise<void> {
  disk.free(server.pid);
  await until(isWritable);
}

async function dispatch(): Promise<string> {
  const { status, body } = await call("POST", "/v1/tasks", { agent: "helper", prompt: "hi" });
  expect(status).toBe(202);
  return body.id;
}

const taskOf = async (id: string) => (await call("GET", `/v1/tasks/${id}`)).body;

type Late = Entry & { readonly detail?: { readonly late_ms?: number } };

/** The file's entries after the server has ended: complete, chained, every intent settled. */
async function evidence(): Promise<Late[]> {
  expect(await server.end("SIGTERM")).toBe(0);
  const file = readFile(join(data, "gatehouse.db"));
  expect(file.integrity).toEqual([{ integrity_check: "ok" }]);
  expect(file.foreignKeys).toEqual([]);
  expect(chainFaults(file.rows)).toEqual([]);
  expect(unsettled(file.entries)).toEqual([]);
  return file.entries;
}

test("a stop is recorded once there is room, without another call, and lasts", async () => {
  const hold = held();
  fake.script("talks", hold.script);
  const id = await dispatch();
  await hold.asked;
  await fill();
  expect((await call("POST", "/v1/tasks", { agent: "helper", prompt: "hi" })).status).toBe(503);
  expect((await call("POST", "/v1/agents/helper/stop")).body.status).toBe("stopped");
  await until(() => fake.requests[0]?.aborted === true);
  await free();
  expect((await call("POST", "/v1/tasks", { agent: "helper", prompt: "hi" })).body.code).toBe(
    "agent_stopped",
  );
  const recorded = async () => (await call("GET", "/v1/ledger?action=oversight.stop")).body.data;
  await until(async () => (await recorded()).length === 1);
  await until(async () => (await taskOf(id)).status === "cancelled");
  await restart("SIGKILL");
  expect((await call("GET", "/v1/agents/helper")).body.status).toBe("stopped");
  expect((await taskOf(id)).error.code).toBe("agent_stopped");
  const entries = await evidence();
  const late = entries.filter(({ detail }) => detail?.late_ms !== undefined);
  expect(late.map(({ action }) => action).toSorted()).toEqual(["oversight.stop", "task.dispatch"]);
  expect(fake.requests).toHaveLength(1);
});

test("an accepted task survives a kill that loses a stop held only in memory, and continues", async () => {
  const hold = held({ chunks: ["ok"] });
  fake.script("talks", hold.script);
  const id = await dispatch();
  await hold.asked;
  await fill();
  expect((await call("POST", "/v1/agents/helper/stop")).body.status).toBe("stopped");
  hold.open();
  await restart("SIGKILL");
  expect((await call("GET", "/v1/agents/helper")).body.status).toBe("active");
  await until(async () => (await taskOf(id)).status === "succeeded");
  const entries = await evidence();
  expect(entries.filter(({ action }) => action === "oversight.stop")).toEqual([]);
});

test("a process with a stop and cancels held only in memory ends in order, and logs all of them", async () => {
  const hold = held();
  fake.script("talks", hold.script);
  await call("POST", "/v1/agents", { name: "other", owner: "tests", memory_scope: "/" });
  const id = await dispatch();
  await hold.asked;
  await fill();
  expect((await call("POST", `/v1/tasks/${id}/cancel`)).body.status).toBe("cancelled");
  expect((await call("POST", "/v1/agents/other/stop")).body.status).toBe("stopped");
  const ended = server;
  hold.open();
  await restart("SIGTERM");
  const lines = ended
    .stderr()
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line));
  const lost = (message: string) => lines.find((line) => line.level === "error" && line.message === message);
  expect(lost("a decision could not be recorded and is lost")).toMatchObject({
    action: "oversight.stop",
    agent: "other",
    decision: "stop",
    decided_at: expect.any(String),
    person: expect.any(String),
  });
  expect(lost("a task's end cannot be written")).toMatchObject({
    task: id,
    status: "cancelled",
    action: "task.cancel",
    decided_at: expect.any(String),
    actor: expect.any(String),
  });
  // Only the log knows of the cancellation.
  await until(async () => (await taskOf(id)).finished_at !== null);
  await evidence();
});

test("through repeated full disks and kills, nothing is sent without its intent, and nothing accepted is lost", async () => {
  const random = seeded(20_260_911);
  const accepted = new Set<string>();
  const refused: string[] = [];
  for (let round = 0; round < 12; round++) {
    await fill();
    for (let asks = 0; asks < 3; asks++) {
      const key = `${round}-${asks}`;
      const answer = await call(
        "POST",
        "/v1/tasks",
        { agent: "helper", prompt: key },
        { "idempotency-key": key },
      );
      expect(answer.body.code).toBe("ledger_unavailable");
      refused.push(key);
    }
    if (round % 4 === 3) await restart(round % 8 === 3 ? "SIGKILL" : "SIGTERM");
    else await free();
    const more = Math.floor(random() * 8);
    for (const id of await Promise.all(Array.from({ length: more }, dispatch))) accepted.add(id);
  }
  for (const id of accepted) await until(async () => (await taskOf(id)).finished_at !== null);
  const entries = await evidence();
  const file = readFile(join(data, "gatehouse.db"));
  expect(file.tasks.map(({ id }) => id).toSorted()).toEqual([...accepted].toSorted());
  expect(file.keys.filter(({ key }) => refused.includes(key))).toEqual([]);
  const intents = entries.filter(({ action, phase }) => action === "model.call" && phase === "intent");
  expect(fake.requests.length).toBeLessThanOrEqual(intents.length);
  expect(accepted.size).toBeGreaterThan(10);
});
