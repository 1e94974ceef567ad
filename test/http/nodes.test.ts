/** `GET /v1/nodes`: who may read it, and what it shows. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { VERSION } from "../../src/base/version.ts";
import { NAMED_SCOPES } from "../access/routes.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { startNodes } from "../support/nodes.ts";
import { missingPostgres } from "../support/postgres/database.ts";
import { until } from "../support/until.ts";

const NODE = {
  id: expect.stringMatching(/^node_\w{26}$/),
  version: VERSION,
  since: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
  last_seen: expect.stringMatching(/Z$/),
  tasks: 0,
};

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.stop());

test("tokens that do not operate the server are refused", async () => {
  const scopes = await gateway.token({ scopes: [...NAMED_SCOPES, "tools:*"] });
  const other = await gateway.workspace("other");
  await gateway.agent("helper");
  const agents = await gateway.token({ agent: "helper", scopes: ["admin"] });
  const codes = [];
  for (const token of [scopes, other, agents]) {
    const { status, body } = await gateway.call("GET", "/v1/nodes", { token });
    codes.push([status, body.code]);
  }
  expect(codes).toEqual([
    [403, "scope_missing"],
    [403, "operator_only"],
    [403, "operator_only"],
  ]);
});

test("a server that shares its store with none lists itself, and the call is recorded", async () => {
  const { status, body, headers } = await gateway.call("GET", "/v1/nodes");
  expect([status, body]).toEqual([200, { data: [NODE], next_cursor: null }]);
  const entry = await gateway.call("GET", `/v1/ledger/${headers.get("gatehouse-ledger")}`);
  expect(entry.body).toMatchObject({ action: "node.list", outcome: "succeeded" });
});

test.skipIf(missingPostgres !== undefined)("servers that share a store list all, page by page", async () => {
  const { nodes, stop } = await startNodes(3);
  const [first, , third] = nodes;
  if (!first || !third) throw new Error("three nodes were started");
  await until(async () => (await third.call("GET", "/v1/nodes")).body.data.length === 3);
  const { body: all } = await first.call("GET", "/v1/nodes");
  expect(all).toEqual({ data: [NODE, NODE, NODE], next_cursor: null });
  const { body: page } = await third.call("GET", "/v1/nodes?limit=2");
  const ids = (list: { data: { id: string }[] }) => list.data.map(({ id }) => id);
  expect(ids(page)).toEqual(ids(all).slice(0, 2));
  const { body: rest } = await third.call("GET", `/v1/nodes?limit=2&cursor=${page.next_cursor}`);
  expect([ids(rest), rest.next_cursor]).toEqual([ids(all).slice(2), null]);
  const refused = await third.call("GET", "/v1/nodes?cursor=x");
  expect(refused.status).toBe(422);
  await stop();
});
