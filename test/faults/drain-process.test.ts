/** What a real process with work in progress does on one signal, two and three. */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { chainFaults } from "../ledger/support.ts";
import { allEvents } from "../support/events.ts";
import { type FakeModel, startFakeModel } from "../support/fake-model.ts";
import { type ServerProcess, serve, tempDir } from "../support/process.ts";
import { type Gate, gate, until } from "../tasks/support.ts";
import { readFile, settings, unsettled } from "./support.ts";

setDefaultTimeout(60_000);

let directory: ReturnType<typeof tempDir>;
let data: string;
let fake: FakeModel;
let server: ServerProcess;
let answers: Gate;

beforeEach(async () => {
  directory = tempDir();
  data = join(directory.path, "gatehouse-data");
  answers = gate();
  fake = startFakeModel({ fallback: { chunks: ["half, ", "whole"], gate: answers.opened } });
  mkdirSync(data, { mode: 0o700 });
  // Longer than any machine takes for the rest, so the wait never ends because of the time.
  writeFileSync(join(data, "gatehouse.yaml"), `${settings(fake)}\ndrain_seconds: 3600\n`);
  await start();
  await call("POST", "/v1/agents", { name: "helper", owner: "tests", memory_scope: "/" });
});
afterEach(async () => {
  await server.end("SIGKILL");
  await fake.close();
  directory.remove();
});

async function start(): Promise<void> {
  server = await serve([], { cwd: directory.path });
}

async function call(method: string, path: string, body?: object): Promise<Response> {
  const token = readFileSync(join(data, "admin.token"), "utf8").trim();
  return fetch(server.url + path, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

async function dispatched(): Promise<string> {
  const before = fake.requests.length;
  const response = await call("POST", "/v1/tasks", { agent: "helper", prompt: "hi" });
  const { id } = (await response.json()) as { id: string };
  await until(() => fake.requests.length > before);
  return id;
}

async function isDraining(): Promise<boolean> {
  return (await fetch(`${server.url}/readyz`)).status === 503;
}

/** @param unfinished tasks whose dispatch has no outcome yet */
function expectSound(unfinished = 0): void {
  const { rows, entries, integrity } = readFile(join(data, "gatehouse.db"));
  expect(integrity).toEqual([{ integrity_check: "ok" }]);
  expect(chainFaults(rows)).toEqual([]);
  const open = unsettled(entries);
  expect(open.filter((each) => !each.includes(" task.dispatch of "))).toEqual([]);
  expect(open.length).toBe(unfinished);
}

test("after one signal, the server serves readers until the answer exists, then ends with 0", async () => {
  const id = await dispatched();
  const ended = server.end("SIGTERM");
  await until(isDraining);
  expect((await call("POST", "/v1/tasks", { agent: "helper", prompt: "hi" })).status).toBe(503);
  const events = allEvents(await call("GET", `/v1/tasks/${id}/events`));
  answers.open();
  expect(await ended).toBe(0);
  expect((await events).at(-1)).toMatchObject({ event: "task.finished", data: { output: "half, whole" } });
  expectSound();
});

test("after a second signal, it does not wait for the answer, and still ends with 0 and everything saved", async () => {
  const id = await dispatched();
  const events = call("GET", `/v1/tasks/${id}/events`).then(allEvents);
  const ended = server.end("SIGTERM");
  await until(isDraining);
  process.kill(server.pid, "SIGINT");
  expect(await ended).toBe(0);
  expect((await events).map(({ event }) => event)).not.toContain("task.finished");
  expectSound(1);
  answers.open();
  await start();
  expect((await allEvents(await call("GET", `/v1/tasks/${id}/events`))).at(-1)).toMatchObject({
    event: "task.finished",
    data: { status: "succeeded", output: "half, whole" },
  });
});

test("after one signal, an idle server ends with 0", async () => {
  expect(await server.end("SIGTERM")).toBe(0);
  expectSound();
});
