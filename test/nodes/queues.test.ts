/** The queues of gateways that share a store: limits count once, and a node with nothing to do takes waiting tasks. */
import { afterEach, describe, expect, test } from "bun:test";
import { type FakeModel, startFakeModel } from "../support/fake-model.ts";
import type { TestGateway } from "../support/gateway.ts";
import { startNodes, type TestNodes } from "../support/nodes.ts";
import { missingPostgres } from "../support/postgres/database.ts";
import { until } from "../support/until.ts";
import { dispatch, gate, ledger, unsettled, yamlOf } from "../tasks/support.ts";

const opened: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});

interface Pair {
  readonly both: readonly [TestGateway, TestGateway];
  readonly upstream: FakeModel;
  readonly nodes: TestNodes;
}

async function startPair(limits: Record<string, number | string>): Promise<Pair> {
  const upstream = startFakeModel();
  opened.push(() => upstream.close());
  const nodes = await startNodes(1, { yaml: yamlOf(upstream.url, { tiers: { 1: ["a"] }, limits }) });
  opened.push(() => nodes.stop());
  const [first] = nodes.nodes;
  if (!first) throw new Error("no node was started");
  await first.agent("plain");
  const second = await nodes.add();
  await until(async () => (await nodes.database.query("SELECT 1 FROM nodes")).length === 2);
  return { both: [first, second], upstream, nodes };
}

async function statuses(node: TestGateway): Promise<string[]> {
  const { body } = await node.call("GET", "/v1/tasks?limit=100");
  return body.data.map(({ status }: { status: string }) => status);
}

const allSucceeded = async (node: TestGateway) =>
  (await statuses(node)).every((each) => each === "succeeded");

describe.skipIf(missingPostgres !== undefined)("over two nodes", () => {
  for (const limit of [1, 2, 3]) {
    test(`never more than ${limit} tasks run if that is enforced, and all run in the end`, async () => {
      const { both, upstream, nodes } = await startPair({ concurrent_tasks: limit, enforcement: "enforced" });
      let [now, most] = [0, 0];
      upstream.script("a", () => {
        now += 1;
        most = Math.max(most, now);
        const ended = Bun.sleep(40).then(() => {
          now -= 1;
        });
        return { chunks: ["done"], gate: ended };
      });
      await Promise.all(both.flatMap((node) => [1, 2, 3, 4].map(() => dispatch(node, { agent: "plain" }))));
      await until(() => allSucceeded(both[0]));
      expect(most).toBe(limit);
      expect(upstream.requests).toHaveLength(8);
      expect(unsettled(await ledger(both[0]))).toEqual([]);
      const taken = "SELECT 1 FROM task_places WHERE taken > 0";
      await until(async () => (await nodes.database.query(taken)).length === 0);
    });
  }

  test("the places of a node that is gone are free", async () => {
    const { both, upstream, nodes } = await startPair({ concurrent_tasks: 1, enforcement: "enforced" });
    const held = gate();
    upstream.script("a", (_, index) => ({ chunks: ["done"], ...(index === 0 ? { gate: held.opened } : {}) }));
    await dispatch(both[0], { agent: "plain" });
    await until(() => upstream.requests.length === 1);
    await dispatch(both[1], { agent: "plain" });
    await nodes.database.query(
      "DELETE FROM nodes WHERE id = (SELECT id FROM nodes ORDER BY since, id LIMIT 1)",
    );
    await until(() => allSucceeded(both[1]));
    held.open();
  });

  test("a limit that is raised on one node lets tasks begin that wait on the other", async () => {
    const { both, upstream } = await startPair({ concurrent_tasks: 1, enforcement: "enforced" });
    const held = gate();
    upstream.script("a", () => ({ chunks: ["done"], gate: held.opened }));
    // All wait at one node, which has every place that there is, so it asks for no more.
    for (let count = 0; count < 6; count++) await dispatch(both[0], { agent: "plain" });
    await until(() => upstream.requests.length === 1);
    const limits = (change: object) => both[1].call("PATCH", "/v1/workspace", { body: { limits: change } });
    expect((await limits({ concurrent_tasks: 3 })).status).toBe(200);
    await until(() => upstream.requests.length === 3);
    expect((await limits({ enforcement: "soft" })).status).toBe(200);
    await until(() => upstream.requests.length === 6);
    held.open();
    await until(() => allSucceeded(both[1]));
  });

  test("a queue is full once its tasks on all nodes are as many as it may have", async () => {
    const limits = { running_tasks_per_node: 1, queued_tasks: 3 };
    const { both, upstream } = await startPair(limits);
    const held = gate();
    upstream.script("a", { chunks: ["done"], gate: held.opened });
    for (const node of both) await dispatch(node, { agent: "plain" });
    await until(() => upstream.requests.length === 2);
    for (let waiting = 0; waiting < 3; waiting++) await dispatch(both[0], { agent: "plain" });
    const ask = () => both[1].call("POST", "/v1/tasks", { body: { agent: "plain", prompt: "hi" } });
    // The other node hears of it a moment later.
    await until(async () => (await both[1].call("GET", "/v1/workspace")).body.usage.tasks_queued === 3);
    expect(await ask()).toMatchObject({ status: 429, body: { code: "queue_full" } });
    held.open();
    await until(() => allSucceeded(both[0]));
    await until(async () => (await ask()).status === 202);
  });

  test("a node with nothing to do takes tasks that wait at another", async () => {
    const { both, upstream } = await startPair({ running_tasks_per_node: 1 });
    const held = gate();
    upstream.script("a", (_, index) => ({ chunks: ["done"], ...(index === 0 ? { gate: held.opened } : {}) }));
    await dispatch(both[0], { agent: "plain" });
    await until(() => upstream.requests.length === 1);
    for (let waiting = 0; waiting < 4; waiting++) await dispatch(both[0], { agent: "plain" });
    await until(async () => (await statuses(both[1])).filter((each) => each === "succeeded").length >= 2);
    held.open();
    await until(() => allSucceeded(both[0]));
    expect(upstream.requests).toHaveLength(5);
    expect(unsettled(await ledger(both[1]))).toEqual([]);
  });
});
