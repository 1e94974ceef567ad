/** Killed at any moment, again and again: what was acknowledged is there, ends once, and the evidence says the truth. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { chainFaults } from "../ledger/support.ts";
import { allEvents, type ReadEvent } from "../support/events.ts";
import { startFakeModel } from "../support/fake-model.ts";
import { type ServerProcess, serve, serveBriefly, tempDir } from "../support/process.ts";
import { readFile, scriptSlowModels, seeded, settings, unsettled, WORDS } from "./support.ts";

setDefaultTimeout(120_000);

const ROUNDS = 8;
const TASKS_A_ROUND = 12;
const random = seeded(20_261_121);

interface Asked {
  readonly key: string;
  readonly body: object;
  /** The task's id, once a 202 has come back. */
  id?: string;
}

interface TaskView {
  readonly id: string;
  readonly status: string;
  readonly output: string | null;
  readonly error: { readonly code: string } | null;
  readonly tools_called: readonly { readonly status: string }[];
}

const directory = tempDir();
const data = join(directory.path, "gatehouse-data");
const fake = startFakeModel({ record: false });
const asked: Asked[] = [];
const tasks: TaskView[] = [];
const events = new Map<string, ReadEvent[]>();
const replays: { key: string; id: string; replayed: string | null }[] = [];
let file: ReturnType<typeof readFile>;

function call(
  server: ServerProcess,
  method: string,
  path: string,
  body?: object,
  headers = {},
): Promise<Response> {
  const token = readFileSync(join(data, "admin.token"), "utf8").trim();
  return fetch(server.url + path, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

/** Asks for a task; whether and when the answer comes is the server's luck. */
async function dispatch(server: ServerProcess, each: Asked): Promise<void> {
  try {
    const response = await call(server, "POST", "/v1/tasks", each.body, { "idempotency-key": each.key });
    if (response.status !== 202) return;
    const { id } = (await response.json()) as { id: string };
    // The same key never makes a second task, also where the first answer was lost in a crash.
    if (each.id !== undefined && each.id !== id) throw new Error(`${each.key} made ${each.id} and ${id}`);
    each.id = id;
  } catch (error) {
    if (error instanceof Error && error.message.includes(" made ")) throw error;
  }
}

beforeAll(async () => {
  scriptSlowModels(fake);
  mkdirSync(data, { mode: 0o700 });
  writeFileSync(join(data, "gatehouse.yaml"), settings(fake));
  const options = { cwd: directory.path };
  for (let round = 0; round < ROUNDS; round++) {
    const server = await serve([], options);
    if (round === 0) {
      await call(server, "POST", "/v1/agents", { name: "helper", owner: "tests", memory_scope: "/" });
    }
    for (let n = 0; n < TASKS_A_ROUND; n++) {
      const tools = n % 3 === 0 ? { tier: 2, tools: ["time.now"] } : { tier: 1 };
      asked.push({ key: `${round}-${n}`, body: { agent: "helper", prompt: `Task ${round}-${n}`, ...tools } });
    }
    const unanswered = asked.filter((each) => each.id === undefined);
    const spread = unanswered.map(async (each) => {
      await Bun.sleep(random() * 150);
      await dispatch(server, each);
    });
    await Bun.sleep(20 + random() * 450);
    await server.end("SIGKILL");
    await Promise.all(spread);
    // Now and then it dies again while it takes up what was left.
    if (round % 3 === 1) await serveBriefly(150 + random() * 350, options);
  }
  const last = await serve([], options);
  for (const each of asked) if (each.id === undefined) await dispatch(last, each);
  for (const { id } of asked) {
    // A task's stream ends when the task does.
    events.set(id ?? "", await allEvents(await call(last, "GET", `/v1/tasks/${id}/events`)));
    tasks.push((await (await call(last, "GET", `/v1/tasks/${id}`)).json()) as TaskView);
  }
  for (const { key, body } of asked) {
    const again = await call(last, "POST", "/v1/tasks", body, { "idempotency-key": key });
    const { id } = (await again.json()) as { id: string };
    replays.push({ key, id, replayed: again.headers.get("idempotency-replayed") });
  }
  expect(await last.end("SIGTERM")).toBe(0);
  file = readFile(join(data, "gatehouse.db"));
}, 120_000);

afterAll(async () => {
  await fake.close();
  directory.remove();
});

describe("after every crash", () => {
  test("each task that was acknowledged exists, once", () => {
    const ids = asked.map((each) => each.id);
    expect(new Set(ids).size).toBe(ROUNDS * TASKS_A_ROUND);
    expect(file.tasks.map((task) => task.id).toSorted()).toEqual(ids.map(String).toSorted());
  });

  test("each has ended, with its whole answer or with why it has none", () => {
    for (const task of tasks) {
      const end = task.status === "succeeded" ? task.output : task.error?.code;
      expect(`${task.id} ${task.status} ${end}`).toBeOneOf([
        `${task.id} succeeded ${WORDS.join("")}`,
        `${task.id} failed interrupted`,
      ]);
    }
    // Otherwise the kills came too late to mean anything, or too early to let anything happen.
    const statuses = tasks.map((task) => task.status);
    expect(statuses).toContain("succeeded");
    const starts = tasks.map(
      ({ id }) => events.get(id)?.filter(({ event }) => event === "task.started").length ?? 0,
    );
    expect(Math.max(...starts)).toBeGreaterThan(1);
  });

  test("those that had called a tool went on from there", () => {
    const called = tasks.filter((task) => task.tools_called.length > 0);
    const wentOn = called.filter(
      ({ id }) => (events.get(id)?.filter(({ event }) => event === "task.started").length ?? 0) > 1,
    );
    expect(wentOn.length).toBeGreaterThan(0);
    for (const task of wentOn) {
      const { status } = task;
      expect(status === "succeeded" || task.error?.code === "interrupted").toBe(true);
    }
    expect(wentOn.some(({ status }) => status === "succeeded")).toBe(true);
  });

  test("no tool was called twice by itself", () => {
    for (const task of tasks) expect(task.tools_called.length).toBeLessThanOrEqual(1);
  });

  test("each task's events end once, count up, and add up to its output", () => {
    for (const task of tasks) {
      const seen = events.get(task.id) ?? [];
      expect(seen.filter((event) => event.event === "task.finished")).toHaveLength(1);
      expect(seen.at(-1)).toMatchObject({
        event: "task.finished",
        data: { id: task.id, status: task.status },
      });
      const ids = seen.map((event) => event.id);
      expect(ids.toSorted((a, b) => a - b)).toEqual(ids);
      expect(new Set(ids).size).toBe(ids.length);
      const from = seen.findLastIndex(
        (event) => event.event === "output.reset" || event.event === "tool.result",
      );
      const text = seen
        .slice(from + 1)
        .flatMap((event) => (event.event === "output.delta" ? [event.data.text] : []));
      if (task.status === "succeeded") expect(text.join("")).toBe(task.output ?? "");
    }
  });

  test("each idempotency key answers with the task that it made", () => {
    expect(replays).toEqual(asked.map(({ key, id }) => ({ key, id: id ?? "", replayed: "true" })));
    expect(file.keys).toHaveLength(asked.length);
  });

  test("the file is whole", () => {
    expect(file.integrity).toEqual([{ integrity_check: "ok" }]);
    expect(file.foreignKeys).toEqual([]);
  });

  test("the chain holds", () => {
    expect(file.rows.length).toBeGreaterThan(asked.length * 3);
    expect(chainFaults(file.rows)).toEqual([]);
  });

  test("every intent has exactly one outcome", () => {
    expect(unsettled(file.entries)).toEqual([]);
  });

  test("every task was dispatched once and ended once, and the evidence says how", () => {
    const dispatches = file.entries.filter((entry) => entry.action === "task.dispatch");
    for (const task of tasks) {
      const about = dispatches.filter((entry) => entry.task === task.id && entry.phase !== "single");
      expect(about.map((entry) => `${entry.phase} ${entry.outcome}`)).toEqual([
        "intent allowed",
        `outcome ${task.status}`,
      ]);
    }
  });
});
