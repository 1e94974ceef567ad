/** Calls of MCP that wait for people or for agents, over nodes. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { addConnector, type Client, connect, request, watch } from "../mcp/support.ts";
import { type FakeModel, startFakeModel } from "../support/fake-model.ts";
import type { TestGateway } from "../support/gateway.ts";
import { startNodes, type TestNodes } from "../support/nodes.ts";
import { missingPostgres } from "../support/postgres/database.ts";
import { type ScriptedMcp, startScriptedMcp } from "../support/scripted-mcp.ts";
import { until } from "../support/until.ts";
import { yamlOf } from "../tasks/support.ts";

describe.skipIf(missingPostgres !== undefined)("a call of MCP that waits", () => {
  let started: TestNodes;
  let a: TestGateway;
  let b: TestGateway;
  let model: FakeModel;
  let upstream: ScriptedMcp;
  let client: Client;

  beforeAll(async () => {
    model = startFakeModel();
    upstream = startScriptedMcp(["send"]);
    started = await startNodes(2, { yaml: yamlOf(model.url, { tiers: { 1: ["a"] } }) });
    const [first, second] = started.nodes;
    if (!first || !second) throw new Error("two nodes were started");
    [a, b] = [first, second];
    await addConnector(a, "up", upstream.url);
    await a.agent("careful", { approvals: ["up.send"] });
    client = await connect(a, { token: await a.token({ agent: "careful" }) });
  });
  afterAll(async () => {
    await started.stop();
    await upstream.close();
    await model.close();
  });

  test("for a person is answered when it was approved on another node", async () => {
    const stream = watch(
      await client.open(request("tools/call", { name: "up__send", arguments: { to: "all" } })),
    );
    const pending = async () => (await b.call("GET", "/v1/approvals")).body.data[0];
    await until(async () => (await pending()) !== undefined);
    const { task, call_id, arguments_hash, definition_hash } = await pending();
    const path = `/v1/tasks/${task}/approvals/${call_id}`;
    const body = { decision: "approve", arguments_hash, definition_hash };
    expect((await b.call("POST", path, { body })).status).toBe(200);
    const { data } = await stream.saw((event) => event.data.includes('"result"'));
    expect(JSON.parse(data).result.content).toEqual([{ type: "text", text: 'send {"to":"all"}' }]);
    expect(upstream.calls).toHaveLength(1);
  });

  test("for an agent is answered at the end of its task", async () => {
    const answer = await client.call("agents__careful", { prompt: "hi" });
    expect(answer.structuredContent.status).toBe("succeeded");
  });
});
