/** Rights and settings that were changed on one node hold on the others. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { type Browser, linkFor, OWN_PAGE, signIn } from "../access/session-support.ts";
import type { Answered, TestGateway } from "../support/gateway.ts";
import { startNodes, type TestNodes } from "../support/nodes.ts";
import { missingPostgres } from "../support/postgres/database.ts";
import { until } from "../support/until.ts";

setDefaultTimeout(60_000);

describe.skipIf(missingPostgres !== undefined)("with two nodes", () => {
  let started: TestNodes;
  let [a, b]: readonly TestGateway[] = [];

  beforeAll(async () => {
    started = await startNodes(2);
    [a, b] = started.nodes;
  });

  afterAll(() => started.stop());

  const nodes = (): readonly [TestGateway, TestGateway] => {
    if (!a || !b) throw new Error("two nodes were started");
    return [a, b];
  };

  async function issue(node: TestGateway, request: object = { scopes: ["admin"] }) {
    const { status, body } = await node.call("POST", "/v1/tokens", { body: { name: "test", ...request } });
    expect(status).toBe(201);
    return body as { readonly id: string; readonly secret: string };
  }

  const statusOf = async (node: TestGateway, token: string) =>
    (await node.call("GET", "/v1/agents", { token })).status;

  describe("a token", () => {
    test.each([
      ["revoked", "DELETE", ""],
      ["rotated", "POST", "/rotate"],
    ])("%s on one node is refused on the other", async (_, method, path) => {
      const [first, second] = nodes();
      const token = await issue(first);
      expect(await statusOf(second, token.secret)).toBe(200);
      expect((await first.call(method, `/v1/tokens/${token.id}${path}`)).status).toBeOneOf([200, 204]);
      await until(async () => (await statusOf(second, token.secret)) === 401);
    });

    test("whose agent is archived on one node is refused on the other", async () => {
      const [first, second] = nodes();
      await first.agent("archived");
      const token = await issue(second, { agent: "archived", scopes: ["agents:read"] });
      expect(await statusOf(second, token.secret)).toBe(200);
      expect((await first.call("DELETE", "/v1/agents/archived")).status).toBe(204);
      await until(async () => (await statusOf(second, token.secret)) === 401);
    });

    test("issued or rotated on one node works on the other at once", async () => {
      const [first, second] = nodes();
      const token = await issue(first);
      expect(await statusOf(second, token.secret)).toBe(200);
      const rotated = await second.call("POST", `/v1/tokens/${token.id}/rotate`);
      expect(await statusOf(first, rotated.body.secret)).toBe(200);
    });

    test("was last used when any node saw it last", async () => {
      const [first, second] = nodes();
      const { id, secret } = await issue(first);
      const row = () => started.database.query("SELECT last_used_at FROM tokens WHERE id = $1", [id]);
      await statusOf(second, secret);
      await Bun.sleep(5);
      await statusOf(first, secret);
      await until(async () => Number((await row())[0]?.last_used_at ?? 0) > 0);
      const before = Number((await row())[0]?.last_used_at);
      await Bun.sleep(6_000);
      expect(Number((await row())[0]?.last_used_at)).toBeGreaterThanOrEqual(before);
    });
  });

  describe("an agent", () => {
    const read = async (node: TestGateway, name: string) =>
      (await node.call("GET", `/v1/agents/${name}`)).body;

    test("stopped on one node is stopped on the other, until any of them resumes it", async () => {
      const [first, second] = nodes();
      await first.agent("halted");
      expect((await read(second, "halted")).status).toBe("active");
      expect((await first.call("POST", "/v1/agents/halted/stop")).status).toBe(200);
      await until(async () => (await read(second, "halted")).status === "stopped");
      const body = { agent: "halted", prompt: "x" };
      expect((await second.call("POST", "/v1/tasks", { body })).status).toBe(409);
      expect((await second.call("POST", "/v1/agents/halted/resume")).status).toBe(200);
      await until(async () => (await read(first, "halted")).status === "active");
    });

    test("changed on both nodes keeps all changes, and one version for each", async () => {
      const [first, second] = nodes();
      await first.agent("changed");
      const { version } = await read(second, "changed");
      const changes = [
        first.call("PATCH", "/v1/agents/changed", { body: { description: "from the first" } }),
        second.call("PATCH", "/v1/agents/changed", { body: { instructions: "from the second" } }),
      ];
      for (const { status } of await Promise.all(changes)) expect(status).toBe(200);
      for (const node of [first, second]) {
        await until(async () => (await read(node, "changed")).version === version + 2);
        expect(await read(node, "changed")).toMatchObject({
          description: "from the first",
          instructions: "from the second",
        });
      }
    });

    test("archived on one node is gone on the other, and its name is free", async () => {
      const [first, second] = nodes();
      await first.agent("leaving");
      await read(second, "leaving");
      await first.call("DELETE", "/v1/agents/leaving");
      await until(async () => (await second.call("GET", "/v1/agents/leaving")).status === 404);
      await second.agent("leaving");
    });
  });

  describe("a workspace", () => {
    const own = (
      node: TestGateway,
      token: string,
      method = "GET",
      path = "",
      body?: object,
    ): Promise<Answered> => node.call(method, `/v1/workspace${path}`, { token, ...(body && { body }) });

    test("that does not exist is not found on any node", async () => {
      for (const { call, gateway } of nodes()) {
        const headers = { "gatehouse-operator": "tests", "gatehouse-workspace": "nowhere" };
        expect((await call("GET", "/v1/agents", { token: gateway.operatorSecret, headers })).status).toBe(
          404,
        );
      }
    });

    test("created on one node is served by the other at once, by its operator too", async () => {
      const [first, second] = nodes();
      const token = await first.workspace("new");
      expect((await own(second, token)).body).toMatchObject({ name: "new", status: "active" });
      await first.workspace("newer");
      const headers = { "gatehouse-operator": "tests", "gatehouse-workspace": "newer" };
      const asked = await second.call("GET", "/v1/agents", { token: second.gateway.operatorSecret, headers });
      expect(asked.status).toBe(200);
    });

    test("has the same name only once", async () => {
      const [first, second] = nodes();
      const create = (node: TestGateway) =>
        node.call("POST", "/operator/workspaces", {
          token: node.gateway.operatorSecret,
          headers: { "gatehouse-operator": "tests" },
          body: { name: "twice" },
        });
      const answers = await Promise.all([create(first), create(second)]);
      expect(answers.map(({ status }) => status).sort()).toEqual([201, 409]);
    });

    test("changed on both nodes keeps all changes on both", async () => {
      const [first, second] = nodes();
      const token = await first.workspace("settings");
      await own(second, token);
      const changes = [
        own(first, token, "PATCH", "", { limits: { requests_per_minute: 77 } }),
        own(second, token, "PATCH", "", { limits: { concurrent_tasks: 7 } }),
        own(first, token, "PATCH", "", { budget: { credits_per_month: 5 } }),
      ];
      for (const { status } of await Promise.all(changes)) expect(status).toBe(200);
      for (const node of [first, second]) {
        await until(async () => {
          const { limits, budget } = (await own(node, token)).body;
          return (
            limits.requests_per_minute === 77 &&
            limits.concurrent_tasks === 7 &&
            budget.credits_per_month === 5
          );
        });
      }
    });

    test("stopped on one node is stopped on the other, whose changes leave it stopped", async () => {
      const [first, second] = nodes();
      const token = await first.workspace("stopped");
      await own(second, token);
      expect((await own(first, token, "POST", "/stop")).status).toBe(200);
      await own(second, token, "PATCH", "", { limits: { concurrent_tasks: 3 } });
      await until(async () => (await own(second, token)).body.status === "stopped");
      expect((await own(first, token)).body.status).toBe("stopped");
      expect((await own(second, token, "POST", "/resume")).status).toBe(200);
      await until(async () => (await own(first, token)).body.status === "active");
    });

    test("whose row somebody else has changed is stopped, and stays so when a limit is changed", async () => {
      const [first, second] = nodes();
      const token = await first.workspace("tampered");
      await own(second, token);
      await started.database.query("UPDATE workspaces SET concurrent_tasks = 99 WHERE name = 'tampered'");
      const changed = await own(second, token, "PATCH", "", { limits: { requests_per_minute: 5 } });
      expect(changed.body.status).toBe("stopped");
      await until(async () => (await own(first, token)).body.status === "stopped");
    });
  });

  describe("a browser", () => {
    /** Behind a load balancer, the cookie's name contains the port of the load balancer. */
    const cookieFor = (node: TestGateway, { cookie }: Browser) =>
      cookie.replace(/_\d+=/, `_${new URL(node.url).port}=`);
    const ask = (node: TestGateway, browser: Browser, method = "GET") =>
      node.call(method, "/v1/session", {
        token: null,
        headers: { ...OWN_PAGE, cookie: cookieFor(node, browser) },
      });

    test("signed out on one node is refused on the other, which served it before", async () => {
      const [first, second] = nodes();
      const browser = await signIn(first);
      expect((await ask(second, browser)).status).toBe(200);
      expect((await ask(first, browser, "DELETE")).status).toBe(204);
      await until(async () => (await ask(second, browser)).status === 401);
    });

    test("is signed out on both when its token is revoked", async () => {
      const [first, second] = nodes();
      const token = await issue(first);
      const browser = await signIn(second, token.secret);
      expect((await ask(first, browser)).status).toBe(200);
      await first.call("DELETE", `/v1/tokens/${token.id}`);
      await until(async () => (await ask(second, browser)).status === 401);
    });

    test("signs in once with a link of another node", async () => {
      const [first, second] = nodes();
      const link = await linkFor(first);
      const attempts = await Promise.all(
        [second, second, first].map((node) => node.call("POST", "/v1/session", { token: link })),
      );
      expect(attempts.map(({ status }) => status).sort()).toEqual([201, 401, 401]);
      const other = await linkFor(first);
      expect((await second.call("POST", "/v1/session", { token: other })).status).toBe(201);
      expect((await first.call("POST", "/v1/session", { token: other })).status).toBe(401);
    });
  });
});
