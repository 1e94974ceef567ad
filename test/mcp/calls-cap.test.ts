/** How many tool calls a workspace may have in flight. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { startGateway } from "../support/gateway.ts";
import { ledger, unsettled, until } from "../tasks/support.ts";
import { connect, request } from "./support.ts";

const FAKE_STDIO = join(import.meta.dir, "..", "support", "fake-mcp", "stdio.ts");
const CALLS = 1_000;
const BATCH = 100;
/** One connector accepts fewer calls than a workspace may have in flight. */
const CONNECTORS = 5;

test("beyond 1,000 the next is refused and not sent; another workspace's is made; an ended call makes room", async () => {
  const gateway = await startGateway({ yaml: "limits: { requests_per_minute: 1000000 }\n" });
  const transport = { type: "stdio", command: process.execPath, args: [FAKE_STDIO] };
  for (let made = 0; made < CONNECTORS; made++) {
    const body = { name: `up${made}`, kind: "mcp", transport };
    expect((await gateway.call("POST", "/v1/connectors", { body })).body.status).toBe("ready");
  }
  const client = await connect(gateway, { version: "2025-03-26" });
  const out: Promise<string>[] = [];
  for (let sent = 0; sent < CALLS; sent += BATCH) {
    const params = { name: `up${(sent / BATCH) % CONNECTORS}__hang`, arguments: {} };
    const batch = Array.from({ length: BATCH }, () => request("tools/call", params));
    out.push(client.open(batch).then((response) => response.text()));
  }
  const intents = async () => (await ledger(gateway)).filter(({ phase }) => phase === "intent").length;
  await until(async () => (await intents()) >= CALLS);
  const refusal = await client.refusal("tools/call", { name: "time__now", arguments: {} });
  expect(refusal).toMatchObject({ code: -32_029, data: { code: "rate_limited" } });
  expect(await intents()).toBe(CALLS);
  const other = await connect(gateway, { token: await gateway.workspace("other") });
  expect((await other.call("time__now")).isError).toBeUndefined();
  expect(await client.end()).toBe(200);
  await Promise.all(out);
  await until(async () => unsettled(await ledger(gateway)).length === 0);
  const again = await connect(gateway);
  expect((await again.call("time__now")).structuredContent.now).toBeString();
  await gateway.stop();
}, 30_000);
