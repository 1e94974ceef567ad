/** A page of connectors is not built past what fits, and their tools are compared with an agent's globs in turns. */
import { expect, test } from "bun:test";
import type { Connector } from "../../src/connectors/connector.ts";
import { connectorPage } from "../../src/http/connector-view.ts";
import { startGateway } from "../support/gateway.ts";

const MIB = 1024 * 1024;

test("stops viewing connectors when a page is full", async () => {
  const connectors = Array.from(
    { length: 200 },
    (_, index): Connector => ({
      ...{ name: `c${index}`, kind: "openapi", status: "ready", error: null, scopes: ["*"] },
      ...{ authorisedBy: "system", authorisedAt: 0 },
    }),
  );
  const viewed: string[] = [];
  const page = await connectorPage(connectors, 200, async ({ name }) => {
    viewed.push(name);
    return { length: MIB, parts: () => [JSON.stringify({ name })] };
  });
  expect(viewed).toHaveLength(5);
  const { data, next_cursor: next } = JSON.parse([...page.parts()].join(""));
  expect(data).toHaveLength(4);
  expect(next).not.toBeNull();
});

test("a list for an agent with hundreds of globs lets another workspace's call pass", async () => {
  const gateway = await startGateway();
  try {
    const paths = Object.fromEntries(
      Array.from({ length: 500 }, (_, index) => [
        `/p${index}`,
        { get: { operationId: `${"a".repeat(90)}${index}`, responses: { 200: { description: "ok" } } } },
      ]),
    );
    const document = { openapi: "3.0.0", info: { title: "x", version: "1" }, paths };
    const added = await gateway.call("POST", "/v1/connectors", {
      body: {
        ...{ name: "many", kind: "openapi", spec: JSON.stringify(document) },
        base_url: "http://127.0.0.1:9",
      },
    });
    expect(added.body.tools).toHaveLength(500);
    const globs = Array.from({ length: 199 }, (_, index) => `*?${"a?".repeat(20)}z${index}*`);
    await gateway.agent("globs", { tools: [...globs, "*"], approvals: globs });
    const token = await gateway.token({ agent: "globs", scopes: ["connectors:read"] });
    const other = await gateway.workspace("other");
    const ended: string[] = [];
    const list = gateway.call("GET", "/v1/connectors", { token }).then((answer) => {
      ended.push("list");
      return answer;
    });
    // Not in the same turn as the list.
    await new Promise((resolve) => setImmediate(resolve));
    await gateway.call("GET", "/v1/agents", { token: other }).then(() => ended.push("agents"));
    const { body } = await list;
    expect(ended).toEqual(["agents", "list"]);
    const shown = body.data.find(({ name }: { name: string }) => name === "many");
    expect(shown.tools).toHaveLength(500);
    expect(shown.tools.some(({ approval }: { approval: boolean }) => approval)).toBe(false);
  } finally {
    await gateway.stop();
  }
});
