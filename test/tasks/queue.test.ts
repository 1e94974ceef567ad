import { afterEach, expect, test } from "bun:test";
import type { FakeModelRequest } from "../support/fake-model.ts";
import {
  dispatch,
  ended,
  type Gate,
  gate,
  ledger,
  type Stage,
  type StageOptions,
  startStage,
  until,
} from "./support.ts";

let stage: Stage;
afterEach(() => stage.stop());

/** Starts a stage whose model answers each prompt when the test tells it to. */
async function start(options: StageOptions) {
  stage = await startStage({ tiers: { 1: ["a"] }, ...options });
  await stage.gateway.agent("plain");
  const gates = new Map<string, Gate>();
  const of = (prompt: string): Gate => {
    const known = gates.get(prompt) ?? gate();
    gates.set(prompt, known);
    return known;
  };
  stage.upstream.script("a", (request) => ({ chunks: ["ok"], gate: of(promptOf(request)).opened }));
  return {
    ...stage,
    post: (prompt: string, token?: string) =>
      dispatch(stage.gateway, { agent: "plain", prompt }, token ? { token } : {}),
    release: (prompt: string) => of(prompt).open(),
    order: () => stage.upstream.requests.map(promptOf),
    running: (count: number) => until(() => stage.upstream.requests.length >= count),
    status: async (id: string) => (await stage.gateway.call("GET", `/v1/tasks/${id}`)).body.status,
    usage: async () => (await stage.gateway.call("GET", "/v1/workspace")).body.usage,
  };
}

function promptOf({ body }: FakeModelRequest): string {
  return String(body.messages.at(-1)?.content);
}

const range = (count: number) => Array.from({ length: count }, (_, index) => `p${index}`);

test("enforced: 60 run, the others wait as queued and start in order as slots come free", async () => {
  const { post, release, order, running, status, usage, gateway } = await start({
    limits: { enforcement: "enforced" },
  });
  const ids: string[] = [];
  for (const prompt of range(64)) ids.push(await post(prompt));
  await running(60);
  expect([(await usage()).tasks_running, (await usage()).tasks_queued]).toEqual([60, 4]);
  expect(await Promise.all(ids.slice(59).map(status))).toEqual(["running", ...Array(4).fill("queued")]);
  release("p7");
  await running(61);
  await gateway.call("POST", `/v1/tasks/${ids[3]}/cancel`);
  await running(62);
  expect(order().slice(60)).toEqual(["p60", "p61"]);
  const limited = (await ledger(gateway)).filter(({ action }) => action === "limit.exceeded");
  expect(limited).toEqual([]);
  for (const prompt of range(64)) release(prompt);
  for (const id of ids) await ended(gateway, id);
  expect([(await usage()).tasks_running, (await usage()).tasks_queued]).toEqual([0, 0]);
  expect(order().slice(60)).toEqual(["p60", "p61", "p62", "p63"]);
});

test("soft: all run past 60, with one limit.exceeded entry a minute", async () => {
  const { post, release, usage, gateway } = await start({});
  const ids: string[] = [];
  for (const prompt of range(66)) ids.push(await post(prompt));
  // Some may still be waiting to call the model, because fewer requests are available here than on a server.
  await until(async () => (await usage()).tasks_running === 66);
  const limited = (await ledger(gateway)).filter(({ action }) => action === "limit.exceeded");
  expect(limited).toMatchObject([
    { outcome: "allowed", actor: "system", detail: { limit: "tasks", enforcement: "soft" } },
  ]);
  for (const prompt of range(66)) release(prompt);
  for (const id of ids) expect((await ended(gateway, id)).status).toBe("succeeded");
});

test("soft: beyond the node's own ceiling tasks queue", async () => {
  const { post, release, running, usage, gateway } = await start({ limits: { running_tasks_per_node: 2 } });
  const ids = [await post("p0"), await post("p1"), await post("p2")];
  await running(2);
  expect([(await usage()).tasks_running, (await usage()).tasks_queued]).toEqual([2, 1]);
  for (const prompt of range(3)) release(prompt);
  for (const id of ids) expect((await ended(gateway, id)).status).toBe("succeeded");
});

test("a full queue returns 429 with Retry-After, stores nothing, and accepts tasks again once there is room", async () => {
  const { post, release, running, gateway } = await start({
    limits: { concurrent_tasks: 1, enforcement: "enforced", queued_tasks: 2 },
  });
  const ids = [await post("p0"), await post("p1"), await post("p2")];
  await running(1);
  const request = { body: { agent: "plain", prompt: "p3" }, headers: { "idempotency-key": "one" } };
  for (let again = 0; again < 2; again++) {
    const refused = await gateway.call("POST", "/v1/tasks", request);
    expect([refused.status, refused.body.code]).toEqual([429, "queue_full"]);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    const entry = (await gateway.call("GET", `/v1/ledger/${refused.headers.get("gatehouse-ledger")}`)).body;
    expect(entry).toMatchObject({
      action: "task.dispatch",
      phase: "single",
      outcome: "denied",
      code: "queue_full",
    });
  }
  const listed = (await gateway.call("GET", "/v1/tasks")).body.data.map(({ id }: { id: string }) => id);
  expect(listed).toEqual([...ids].reverse());
  await gateway.call("POST", `/v1/tasks/${ids[1]}/cancel`);
  const taken = await gateway.call("POST", "/v1/tasks", request);
  expect([taken.status, taken.headers.get("idempotency-replayed")]).toEqual([202, null]);
  for (const prompt of range(4)) release(prompt);
  expect((await ended(gateway, taken.body.id)).status).toBe("succeeded");
});

test("parallel posts cannot overfill the queue", async () => {
  const { release, post, running, gateway } = await start({
    limits: { concurrent_tasks: 1, enforcement: "enforced", queued_tasks: 5 },
  });
  const first = await post("p0");
  await running(1);
  const body = { agent: "plain", prompt: "p1" };
  const answers = await Promise.all(
    Array.from({ length: 30 }, () => gateway.call("POST", "/v1/tasks", { body })),
  );
  expect(answers.map(({ status }) => status).sort()).toEqual([...Array(5).fill(202), ...Array(25).fill(429)]);
  release("p0");
  release("p1");
  await ended(gateway, first);
  for (const { status, body } of answers) if (status === 202) await ended(gateway, body.id);
});

test("two workspaces take turns at the node's ceiling", async () => {
  const { post, release, order, running, gateway } = await start({ limits: { running_tasks_per_node: 1 } });
  const other = await gateway.workspace("other");
  const agent = { name: "plain", owner: "tests", memory_scope: "support" };
  await gateway.call("POST", "/v1/agents", { token: other, body: agent });
  for (const prompt of ["a0", "a1", "a2", "a3"]) await post(prompt);
  for (const prompt of ["b0", "b1", "b2"]) await post(prompt, other);
  for (let count = 1; count <= 7; count++) {
    await running(count);
    release(order()[count - 1] ?? "");
  }
  expect(order()).toEqual(["a0", "a1", "b0", "a2", "b1", "a3", "b2"]);
});

test("a changed limit takes effect without a restart", async () => {
  const { post, release, running, usage, gateway } = await start({
    limits: { concurrent_tasks: 1, enforcement: "enforced" },
  });
  const limits = (change: object) => gateway.call("PATCH", "/v1/workspace", { body: { limits: change } });
  const ids: string[] = [];
  for (const prompt of range(6)) ids.push(await post(prompt));
  await running(1);
  await limits({ concurrent_tasks: 3 });
  await running(3);
  expect((await usage()).tasks_running).toBe(3);
  await limits({ enforcement: "soft" });
  await running(6);
  expect((await usage()).tasks_queued).toBe(0);
  for (const prompt of range(6)) release(prompt);
  for (const id of ids) await ended(gateway, id);
});

test("failures of every kind free their slots", async () => {
  const { running, usage, gateway, upstream } = await start({
    limits: { concurrent_tasks: 2, enforcement: "enforced" },
  });
  const ends = ["cancel", "500", "cut", "ok", "400"];
  upstream.script("a", (_request, call) => {
    const end = ends[call % ends.length] ?? "";
    if (end === "cancel") return { hang: true };
    if (end === "cut") return { chunks: ["x", "y"], cutAfter: 1 };
    return end === "ok" ? { chunks: ["ok"] } : { status: Number(end) };
  });
  const ids: string[] = [];
  for (let count = 0; count < 30; count++) ids.push(await dispatch(gateway, { agent: "plain" }));
  await running(2);
  let open = ids;
  await until(async () => {
    const left: string[] = [];
    for (const id of open) {
      const task = (await gateway.call("GET", `/v1/tasks/${id}`)).body;
      if (task.status === "running" && upstream.requests.length > 1)
        await gateway.call("POST", `/v1/tasks/${id}/cancel`);
      if (task.finished_at === null) left.push(id);
    }
    open = left;
    return open.length === 0;
  });
  expect([(await usage()).tasks_running, (await usage()).tasks_queued]).toEqual([0, 0]);
});
