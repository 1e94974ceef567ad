/** `notifications/tools/list_changed` goes to the clients whose tools have changed, and to no others. */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { FakeClock } from "../support/clock.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { type ScriptedMcp, startScriptedMcp } from "../support/scripted-mcp.ts";
import { until } from "../tasks/support.ts";
import { addConnector, type Client, connect, isMessage, type Stream } from "./support.ts";

const CHANGED = isMessage("notifications/tools/list_changed");
/** Longer than the time over which changes are gathered. */
const GATHERED_MS = 1_000;

let gateway: TestGateway;
let upstream: ScriptedMcp;
let clock: FakeClock;
let agents = 0;
let agent: string;
beforeAll(async () => {
  clock = new FakeClock();
  gateway = await startGateway({ clock, yaml: "limits: { requests_per_minute: 1000000 }\n" });
  upstream = startScriptedMcp(["one"]);
});
afterAll(async () => {
  await gateway.stop();
  await upstream.close();
});
beforeEach(async () => {
  agent = `agent-${++agents}`;
  await gateway.agent(agent);
  upstream.list(["one"]);
  clock.advance(GATHERED_MS);
});

interface Listener {
  readonly client: Client;
  readonly stream: Stream;
  /** How often the client was notified, once it has received at least this many notifications and another answer. */
  told(expected: number): Promise<number>;
}

async function listener(token: object, path = "/mcp"): Promise<Listener> {
  const client = await connect(gateway, { token: await gateway.token(token), path });
  const stream = await client.listen();
  return {
    client,
    stream,
    async told(expected) {
      clock.advance(GATHERED_MS);
      await client.toolNames();
      await until(() => stream.events.filter(CHANGED).length >= expected);
      return stream.events.filter(CHANGED).length;
    },
  };
}

test("adding, changing and removing a connector notifies exactly those who may use it", async () => {
  const all = await listener({ scopes: ["admin"] });
  const own = await listener({ agent, scopes: ["tools:up.*"] });
  const others = await listener({ agent, scopes: ["tools:vault.*"] });
  const elsewhere = await gateway.workspace(`other-${agents}`);
  const foreign = await connect(gateway, { token: elsewhere });
  const foreignStream = await foreign.listen();
  const counts = async (expected: number) => [
    await all.told(expected),
    await own.told(expected),
    await others.told(0),
  ];
  expect(await counts(0)).toEqual([0, 0, 0]);
  await addConnector(gateway, "up", upstream.url);
  expect(await counts(1)).toEqual([1, 1, 0]);
  upstream.list(["one", "two"]);
  await gateway.call("POST", "/v1/connectors/up/refresh");
  expect(await counts(2)).toEqual([2, 2, 0]);
  await gateway.call("POST", "/v1/connectors/up/refresh");
  expect(await counts(2)).toEqual([2, 2, 0]);
  await gateway.call("DELETE", "/v1/connectors/up");
  expect(await counts(3)).toEqual([3, 3, 0]);
  expect(foreignStream.events.filter(CHANGED)).toEqual([]);
});

test("a change to only a tool's description or schema causes a notification too", async () => {
  upstream.list([{ name: "one", description: "Old.", inputSchema: { type: "object" } }]);
  await addConnector(gateway, "up", upstream.url);
  const { told } = await listener({ scopes: ["admin"] });
  for (const [at, tool] of [
    { name: "one", description: "New.", inputSchema: { type: "object" } },
    { name: "one", description: "New.", inputSchema: { type: "object", properties: { a: {} } } },
  ].entries()) {
    upstream.list([tool]);
    await gateway.call("POST", "/v1/connectors/up/refresh");
    expect(await told(at + 1)).toBe(at + 1);
  }
  await gateway.call("DELETE", "/v1/connectors/up");
});

test("an agent whose tools change is notified, but not one that changes otherwise", async () => {
  const own = await listener({ agent, scopes: ["tools:*"] });
  await gateway.agent(`${agent}-other`);
  const other = await listener({ agent: `${agent}-other`, scopes: ["tools:*"] });
  await gateway.call("PATCH", `/v1/agents/${agent}`, { body: { description: "Another." } });
  expect([await own.told(0), await other.told(0)]).toEqual([0, 0]);
  await gateway.call("PATCH", `/v1/agents/${agent}`, { body: { tools: ["time.*"] } });
  expect(await own.told(1)).toBe(1);
  await gateway.call("PATCH", `/v1/agents/${agent}`, { body: { tools: ["*"] } });
  expect([await own.told(2), await other.told(0)]).toEqual([2, 0]);
});

test("adding or removing an agent notifies those who may give it tasks", async () => {
  const may = await listener({ scopes: ["tasks:write"] });
  const mayNot = await listener({ scopes: ["tools:*"] });
  await gateway.agent(`${agent}-new`);
  expect([await may.told(1), await mayNot.told(0)]).toEqual([1, 0]);
  await gateway.call("DELETE", `/v1/agents/${agent}-new`);
  expect([await may.told(2), await mayNot.told(0)]).toEqual([2, 0]);
});

test("simultaneous changes cause one notification", async () => {
  const { told } = await listener({ scopes: ["admin"] });
  await addConnector(gateway, "up", upstream.url);
  await gateway.agent(`${agent}-a`);
  await gateway.agent(`${agent}-b`);
  expect(await told(1)).toBe(1);
  await gateway.call("DELETE", "/v1/connectors/up");
});

test("in search mode the two tools are unchanged, whatever else changes", async () => {
  const { told } = await listener({ scopes: ["admin"], tools_mode: "search" });
  await addConnector(gateway, "up", upstream.url);
  expect(await told(0)).toBe(0);
  await gateway.call("DELETE", "/v1/connectors/up");
});
