/** The reason that a client gives for a cancellation is never mistaken for one of the gateway's own. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { addConnector, connect, request } from "../mcp/support.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { type ScriptedMcp, startScriptedMcp } from "../support/scripted-mcp.ts";
import { ledger, unsettled, until } from "../tasks/support.ts";

let gateway: TestGateway;
let upstream: ScriptedMcp;
beforeAll(async () => {
  gateway = await startGateway();
  upstream = startScriptedMcp(["hang"]);
  upstream.answer(() => new Promise(() => {}));
  await addConnector(gateway, "up", upstream.url);
  await gateway.agent("clerk");
});
afterAll(async () => {
  await gateway.stop();
  await upstream.close();
});

const REASONS = ["shutdown", "agent_stopped", "cancelled by me", "a secret of the client"];

test.each(REASONS)(
  "a call cancelled with the reason %j ends without a code, and nothing repeats it",
  async (reason) => {
    const client = await connect(gateway, { token: await gateway.token({ agent: "clerk" }) });
    const before = upstream.calls.length;
    const message = request("tools/call", { name: "up__hang", arguments: {} });
    const response = await client.open(message);
    await until(() => upstream.calls.length > before);
    await client.tell("notifications/cancelled", { requestId: message.id, reason });
    expect(await response.text()).toContain('"code":-32800');
    const calls = async () => (await ledger(gateway)).filter(({ action }) => action === "tool.call");
    await until(async () => unsettled(await calls()).length === 0);
    expect((await calls()).at(-1)).toMatchObject({ phase: "outcome", outcome: "cancelled", code: null });
    expect(JSON.stringify(await ledger(gateway))).not.toContain(reason);
    // The agent can continue to work.
    expect(await client.toolNames()).toContain("up__hang");
  },
);
