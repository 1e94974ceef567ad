/** How many sessions may exist, and which one is closed to make room. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { FakeClock } from "../support/clock.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { BOTH, connect, hello, request } from "./support.ts";

const PER_WORKSPACE = 2_000;

let gateway: TestGateway;
let clock: FakeClock;
beforeAll(async () => {
  clock = new FakeClock();
  gateway = await startGateway({ clock, yaml: "limits: { requests_per_minute: 1000000 }\n" });
});
afterAll(() => gateway.stop());

/** Calls the gateway without a socket, because this test is about its table of sessions. */
async function ask(body: object, session?: string): Promise<Response> {
  const headers = {
    authorization: `Bearer ${gateway.admin}`,
    "content-type": "application/json",
    accept: BOTH,
    ...(session === undefined ? {} : { "mcp-session-id": session }),
  };
  const sent = new Request("http://gate/mcp", { method: "POST", headers, body: JSON.stringify(body) });
  return gateway.gateway.handle(sent);
}

async function open(): Promise<string> {
  const response = await ask(hello());
  await response.text();
  return response.headers.get("mcp-session-id") ?? "";
}

test("beyond 2,000 in a workspace the session idle the longest is closed, but none that is listening", async () => {
  const listening = await connect(gateway);
  const stream = await listening.listen();
  clock.advance(1_000);
  const oldest = await open();
  clock.advance(1_000);
  const second = await open();
  clock.advance(1_000);
  for (let opened = 3; opened < PER_WORKSPACE; opened++) await open();
  expect((await ask(request("ping"), oldest)).status).toBe(200);
  clock.advance(1_000);
  const newest = await open();
  // The oldest was used a moment ago. The second has been idle the longest.
  expect((await ask(request("ping"), second)).status).toBe(404);
  for (const kept of [oldest, newest]) expect((await ask(request("ping"), kept)).status).toBe(200);
  expect(await listening.toolNames()).toContain("time__now");
  const { body } = await gateway.call("GET", "/metrics");
  expect(body).toContain(`gatehouse_mcp_sessions ${PER_WORKSPACE}\n`);
  const other = await connect(gateway, { token: await gateway.workspace("other") });
  expect(await other.toolNames()).toContain("time__now");
  stream.leave();
}, 60_000);
