/**
 * A workspace's queue at its default limit: it refuses the next task, survives a restart, and can be cleared by a
 * stop.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type FakeModel, startFakeModel } from "../support/fake-model.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { until } from "../support/until.ts";
import { dispatch, type Gate, gate, ledger, unsettled, yamlOf } from "./support.ts";

setDefaultTimeout(180_000);

const LIMIT = 10_000;
const CLIENTS = 32;
const AGENTS = ["ann", "bea", "cem", "dov"];
const WATCHED = 40;

interface Accepted {
  readonly id: string;
  readonly agent: string;
}

const dataDir = mkdtempSync(join(tmpdir(), "gatehouse-full-queue-"));
const accepted = new Map<string, Accepted>();
const gates = new Map<string, Gate>();
let upstream: FakeModel;
let gateway: TestGateway;
let yaml: string;

beforeAll(async () => {
  upstream = startFakeModel();
  // Each prompt is different, and the test decides when its answer ends.
  upstream.script("a", ({ body }) => {
    const hold = gate();
    gates.set(String(body.messages.at(-1)?.content), hold);
    return { chunks: ["ok"], gate: hold.opened };
  });
  yaml = yamlOf(upstream.url, {
    tiers: { 1: ["a"] },
    limits: { concurrent_tasks: 1, enforcement: "enforced" },
  });
  gateway = await startGateway({ yaml, dataDir });
  for (const agent of AGENTS) await gateway.agent(agent);
});
afterAll(async () => {
  await gateway.stop();
  await upstream.close();
  rmSync(dataDir, { recursive: true, force: true });
});

const usage = async () => (await gateway.call("GET", "/v1/workspace")).body.usage;

/** Ids of the tasks for which the model was called, in order. */
function started(): string[] {
  return upstream.requests.map(({ body }) => accepted.get(String(body.messages.at(-1)?.content))?.id ?? "");
}

async function untilStarted(count: number): Promise<void> {
  await until(() => upstream.requests.length >= count);
}

/**
 * Agents in turn, starting with the one that has waited longest, and each agent's tasks in the order of their ids.
 */
function inTurns(tasks: Iterable<Accepted>): string[] {
  const sorted = [...tasks].toSorted((one, other) => (one.id < other.id ? -1 : 1));
  const lines = [...Map.groupBy(sorted, ({ agent }) => agent).values()];
  const longest = Math.max(...lines.map((line) => line.length));
  return Array.from({ length: longest }, (_, turn) => lines.flatMap((line) => line[turn]?.id ?? [])).flat();
}

test("10,000 tasks may wait: the next is refused, a restart resumes all of them in turn, a stop ends them", async () => {
  // One agent after another, so that taking turns differs from the order of arrival.
  const share = (LIMIT + 1) / AGENTS.length;
  let count = 0;
  await Promise.all(
    Array.from({ length: CLIENTS }, async () => {
      for (let n = count++; n <= LIMIT; n = count++) {
        const agent = AGENTS[Math.floor(n / share)] ?? "";
        const prompt = `p${n}`;
        accepted.set(prompt, { id: await dispatch(gateway, { agent, prompt }), agent });
      }
    }),
  );
  expect(await usage()).toMatchObject({ tasks_running: 1, tasks_queued: LIMIT });
  for (const agent of AGENTS) {
    const refused = await gateway.call("POST", "/v1/tasks", { body: { agent, prompt: "one more" } });
    expect([refused.status, refused.body.code]).toEqual([429, "queue_full"]);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  }
  expect(await usage()).toMatchObject({ tasks_running: 1, tasks_queued: LIMIT });

  await untilStarted(1);
  await gateway.stop();
  const before = upstream.requests.length;
  gateway = await startGateway({ yaml, dataDir });
  for (let n = 1; n < WATCHED; n++) {
    await untilStarted(before + n);
    gates.get(String(upstream.requests.at(-1)?.body.messages.at(-1)?.content))?.open();
  }
  await untilStarted(before + WATCHED);
  expect(started().slice(before)).toEqual(inTurns(accepted.values()).slice(0, WATCHED));
  expect(await usage()).toMatchObject({ tasks_running: 1, tasks_queued: LIMIT + 1 - WATCHED });

  for (const agent of AGENTS) {
    const stopped = await gateway.call("POST", `/v1/agents/${agent}/stop`);
    expect(stopped.status).toBe(200);
  }
  expect(await usage()).toMatchObject({ tasks_running: 0, tasks_queued: 0 });
  expect(upstream.requests).toHaveLength(before + WATCHED);
  const entries = await ledger(gateway);
  const ends = Map.groupBy(
    entries.filter(({ action, phase }) => action === "task.dispatch" && phase === "outcome"),
    ({ outcome, code }) => `${outcome} ${code ?? ""}`.trim(),
  );
  const ended = (how: string) => new Set(ends.get(how)?.map(({ task }) => task)).size;
  expect(ended("succeeded")).toBe(WATCHED - 1);
  expect(ended("cancelled agent_stopped")).toBe(LIMIT + 1 - (WATCHED - 1));
  expect(unsettled(entries)).toEqual([]);
});
