/** A full disk: nothing is sent out and nothing is reported as done. With room again, everything continues. */
import { beforeEach, describe, expect, test } from "bun:test";
import { addConnector, type Client, connect } from "../mcp/support.ts";
import { dispatch, ended, held, run, unsettled, until } from "../tasks/support.ts";
import { call, endIsRefused, entries, stage, startStage, statusOf, useFullDisk } from "./full-disk-calls.ts";

useFullDisk();

describe("nothing is sent out", () => {
  let client: Client;

  beforeEach(async () => {
    await startStage({ embeds: true });
    await addConnector(stage.gateway, "up", stage.tools.url);
    await stage.gateway.agent("plain");
    // Every upstream works now, so anything that does not arrive later was held back by the gateway.
    expect((await run(stage.gateway, { agent: "plain" })).status).toBe("succeeded");
    expect((await call("POST", "/v1/vault/documents", document)).status).toBe(201);
    client = await connect(stage.gateway);
    await client.call("up__echo", {});
    expect(Math.min(...stage.sent())).toBeGreaterThan(0);
  });

  const document = { title: "A", text: "a sloop", scope: "shelf" };
  const task = { agent: "plain", prompt: "hi" };
  test.each([
    ["POST", "/v1/tasks", task],
    ["POST", "/v1/tasks?stream=true", task],
    ["POST", "/v1/vault/search", { query: "a mast" }],
    ["POST", "/v1/vault/documents", { ...document, text: "a yawl" }],
    ["POST", "/v1/agents", { name: "another", owner: "me", memory_scope: "/" }],
    ["POST", "/v1/agents/plain/resume", {}],
    ["POST", "/v1/tokens", { name: "t", scopes: ["tasks:read"] }],
    ["GET", "/v1/tasks", undefined],
  ])("by %s %s: it is answered with 503, and works again once there is room", async (method, path, body) => {
    await stage.fill();
    const before = stage.sent();
    const refused = await call(method, path, body);
    expect([refused.status, refused.body.code]).toEqual([503, "ledger_unavailable"]);
    expect(refused.headers.get("retry-after")).toBe("5");
    expect(refused.headers.has("gatehouse-ledger")).toBe(false);
    expect(stage.sent()).toEqual(before);
    await stage.free();
    expect((await call(method, path, body)).status).toBeLessThan(300);
  });

  test.each([
    ["up__echo", {}],
    ["agents__plain", { prompt: "hi" }],
    ["vault__search", { query: "a mast" }],
  ])("over MCP by %s", async (name, input) => {
    await stage.fill();
    const before = stage.sent();
    const refused = await client.refusal("tools/call", { name, arguments: input });
    expect(refused.data.code).toBe("ledger_unavailable");
    expect(stage.sent()).toEqual(before);
    await stage.free();
    expect((await client.call(name, input)).isError).not.toBe(true);
    expect(stage.sent()).not.toEqual(before);
  });

  test("by a running task: its next model call is never made, and it ends as interrupted", async () => {
    const hold = held({ toolCalls: [{ name: "up__echo", arguments: {} }] });
    stage.model.script("a", hold.script);
    const id = await dispatch(stage.gateway, { agent: "plain", tools: ["up.echo"] });
    await hold.asked;
    await stage.fill();
    const before = stage.sent();
    hold.open();
    await until(endIsRefused);
    expect(stage.sent()).toEqual(before);
    await stage.free();
    await stage.untilLater(async () => (await statusOf(id)) === "failed");
    expect(await ended(stage.gateway, id)).toMatchObject({
      error: { code: "interrupted" },
      tools_called: [],
    });
    expect(stage.sent()).toEqual(before);
    expect(unsettled(await entries())).toEqual([]);
  });

  test("and readiness names the store until there is room again", async () => {
    const ready = async () => {
      const { status, body } = await call("GET", "/readyz");
      return { status, failing: body.failing };
    };
    await stage.fill();
    // A probe's answer is cached for a second.
    await stage.untilLater(async () => (await ready()).status === 503);
    expect(await ready()).toEqual({ status: 503, failing: ["store"] });
    await stage.free();
    await stage.untilLater(async () => (await ready()).status === 200);
  });
});
