/** The database goes away under two nodes, and comes back. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { createSecret } from "../../src/access/secret.ts";
import { systemRandom } from "../../src/base/ids.ts";
import { signIn } from "../access/session-support.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { type Cluster, startCluster } from "../support/postgres/cluster.ts";
import { createDatabase, missingPrograms, type TestDatabase } from "../support/postgres/database.ts";
import { until } from "../support/until.ts";

setDefaultTimeout(120_000);

describe.skipIf(missingPrograms !== undefined)("two nodes whose database", () => {
  let cluster: Cluster;
  let database: TestDatabase;
  const nodes: TestGateway[] = [];

  beforeAll(async () => {
    cluster = await startCluster();
    database = await createDatabase(cluster.url);
    const admin = createSecret(systemRandom);
    for (let count = 0; count < 2; count++) nodes.push(await startGateway({ database, admin }));
  });

  afterAll(async () => {
    for (const node of nodes) await node.stop();
    await cluster.remove();
  });

  function both(): readonly [TestGateway, TestGateway] {
    const [first, second] = nodes;
    if (!first || !second) throw new Error("two nodes were started");
    return [first, second];
  }

  const faults: readonly (readonly [string, () => Promise<void>, () => Promise<void>])[] = [
    ["was killed", () => cluster.kill(), () => cluster.start()],
    ["is frozen", async () => cluster.freeze(), async () => cluster.thaw()],
  ];

  /** The answer's status and error code. */
  async function resultOf(call: Promise<{ status: number; body: { code?: string } | null }>) {
    const { status, body } = await call;
    return [status, body?.code];
  }

  describe.each(faults)("%s", (name, end, restore) => {
    const [agent, other, workspace] = [`agent-${name}`, `other-${name}`, name].map((text) =>
      text.replaceAll(" ", "-"),
    ) as [string, string, string];
    let token: string;

    test("refuse calls, and stop what must be stopped", async () => {
      const [first, second] = both();
      token = await first.workspace(workspace);
      for (const node of nodes) {
        await node.agent(node === first ? agent : other);
        await node.call("GET", "/v1/workspace", { token });
        await until(async () => (await node.call("GET", "/readyz", { token: null })).status === 200);
      }
      // So the first node knows it by a read.
      expect((await first.call("GET", `/v1/agents/${agent}`)).status).toBe(200);
      const browser = await signIn(first);
      await browser.ask("GET", "/v1/session");
      await end();

      const unavailable = [503, "ledger_unavailable"];
      const early = nodes.flatMap((node) =>
        Array.from({ length: 10 }, () => resultOf(node.call("GET", "/v1/agents"))),
      );
      const stops = [
        resultOf(first.call("POST", `/v1/agents/${agent}/stop`)),
        resultOf(first.call("POST", "/v1/workspace/stop", { token })),
      ];
      expect(await Promise.all(stops)).toEqual(stops.map(() => [200, undefined]));
      for (const answer of await Promise.all(early)) expect(answer).toEqual(unavailable);

      await Bun.sleep(4_000);
      for (const node of [first, second]) {
        expect(await resultOf(node.call("GET", "/v1/agents"))).toEqual(unavailable);
        expect((await node.call("GET", "/readyz", { token: null })).status).toBe(503);
        expect((await node.call("GET", "/livez", { token: null })).status).toBe(200);
      }
      expect(await resultOf(browser.ask("DELETE", "/v1/session"))).toEqual([204, undefined]);
      expect(await resultOf(first.call("POST", `/v1/agents/${agent}/stop`))).toEqual([200, undefined]);
    });

    test("go on by themselves, and everything that was stopped is stopped everywhere", async () => {
      const [first, second] = both();
      await restore();
      for (const node of [first, second]) {
        await until(async () => (await node.call("GET", "/readyz", { token: null })).status === 200);
        await until(async () => (await node.call("GET", "/v1/agents")).status === 200);
      }
      const { call } = second;
      await until(async () => (await call("GET", `/v1/agents/${agent}`)).body.status === "stopped");
      await until(async () => (await call("GET", "/v1/workspace", { token })).body.status === "stopped");
      expect((await call("GET", `/v1/agents/${other}`)).body.status).toBe("active");
      const { data } = (await call("GET", "/v1/ledger?action=oversight.stop&order=desc&limit=50")).body;
      const stops = data.filter((entry: { agent?: string }) => entry.agent === agent);
      expect(stops).toHaveLength(2);
      for (const stop of stops) {
        expect(stop).toMatchObject({ outcome: "succeeded", oversight: { decision: "stop" } });
        expect(stop.detail.late_ms).toBeGreaterThan(0);
      }
    });
  });
});
