/** Deeply nested JSON on every path into a running gateway: the input is refused, and the gateway carries on. */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { PassThrough } from "node:stream";
import { systemClock } from "../../src/base/clock.ts";
import { type Log, silentLog } from "../../src/base/log.ts";
import { bridge } from "../../src/mcp/bridge.ts";
import { addConnector, connect, hello, post } from "../mcp/support.ts";
import { type ScriptedMcp, startScriptedMcp } from "../support/scripted-mcp.ts";
import { ledger, type Stage, startStage } from "./support.ts";

setDefaultTimeout(60_000);

/** `{"a":[[…]]}` with this many levels in total. */
const deepText = (levels: number): string => `{"a":${"[".repeat(levels - 1)}${"]".repeat(levels - 1)}}`;
const deepValue = (levels: number): object => JSON.parse(deepText(levels));
const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

let stage: Stage;
let upstream: ScriptedMcp;
let errors: string[];
beforeEach(async () => {
  errors = [];
  const log: Log = { ...silentLog, error: (message) => void errors.push(message) };
  stage = await startStage({ log });
  upstream = startScriptedMcp(["echo"]);
  await addConnector(stage.gateway, "up", upstream.url);
  await stage.gateway.agent("clerk");
});
afterEach(async () => {
  // None of this counts as a fault of the server.
  expect(errors).toEqual([]);
  await stage.stop();
  await upstream.close();
});

async function runTask(): Promise<Record<string, unknown>> {
  const { gateway } = stage;
  const body = { agent: "clerk", prompt: "Go.", tools: ["up.echo"] };
  const { id } = (await gateway.call("POST", "/v1/tasks", { body })).body;
  // The stream ends when the task does.
  await gateway.call("GET", `/v1/tasks/${id}/events`);
  return (await gateway.call("GET", `/v1/tasks/${id}`)).body;
}

describe("a model", () => {
  test.each([1_000, 45_000])(
    "whose tool arguments have %d levels is told so, and its task continues",
    async (levels) => {
      stage.upstream.script("a", (_request, call) =>
        call === 0
          ? { toolCalls: [{ name: "up__echo", arguments: deepText(levels) }] }
          : { chunks: ["Never mind."] },
      );
      const task = await runTask();
      expect(task).toMatchObject({ status: "succeeded", output: "Never mind.", model: "up/a", error: null });
      expect(task.tools_called).toMatchObject([{ tool: "up.echo", status: "denied" }]);
      expect(upstream.calls).toEqual([]);
      const told = stage.upstream.requests.at(-1)?.body.messages.at(-1);
      expect(JSON.stringify(told)).toContain("nested too deeply: at most 100 levels are allowed");
    },
  );

  test("whose arguments have 100 levels calls its tool", async () => {
    stage.upstream.script("a", (_request, call) =>
      call === 0 ? { toolCalls: [{ name: "up__echo", arguments: deepText(100) }] } : { chunks: ["Done."] },
    );
    expect(await runTask()).toMatchObject({ status: "succeeded", tools_called: [{ status: "succeeded" }] });
    expect(upstream.calls).toHaveLength(1);
  });

  test("whose answer has an event of 45,000 levels fails, and the next one is called", async () => {
    const event = `data: {"id":"1","choices":${"[".repeat(45_000)}${"]".repeat(45_000)}}\n\n`;
    stage.upstream.script("a", { rawBytes: [encode(event)] });
    stage.upstream.script("b", { chunks: ["I can."] });
    expect(await runTask()).toMatchObject({ status: "succeeded", output: "I can.", model: "up/b" });
  });

  test("that is the only one, and whose answers are nested like that, ends its task as model_unavailable", async () => {
    const event = `data: ${deepText(45_000)}\n\n`;
    for (const name of ["a", "b"]) stage.upstream.script(name, { rawBytes: [encode(event)] });
    const task = await runTask();
    expect(task).toMatchObject({ status: "failed", error: { code: "model_unavailable" } });
  });
});

describe("a tool's answer", () => {
  test("that is nested too deeply is a failed call, inside and outside of tasks", async () => {
    upstream.answer(() => ({ content: [], structuredContent: deepValue(2_000) }));
    const { gateway } = stage;
    const direct = await gateway.call("POST", "/v1/tools/up.echo/call", { body: { arguments: {} } });
    expect([direct.status, direct.body.status]).toEqual([200, "failed"]);
    expect(JSON.stringify(direct.body)).toContain("more than 100 levels");
    stage.upstream.script("a", (_request, call) =>
      call === 0 ? { toolCalls: [{ name: "up__echo", arguments: {} }] } : { chunks: ["It failed."] },
    );
    expect(await runTask()).toMatchObject({
      status: "succeeded",
      output: "It failed.",
      tools_called: [{ tool: "up.echo", status: "failed" }],
    });
    const outcomes = (await ledger(gateway)).filter(
      ({ action, phase }) => action === "tool.call" && phase === "outcome",
    );
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(["failed", "failed"]);
    expect(outcomes[0]).toMatchObject({ code: "nested_too_deep" });
  });
});

describe("over MCP", () => {
  const call = (levels: number): string =>
    `{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"up__echo","arguments":${deepText(levels)}}}`;

  test.each(["/mcp", "/mcp/sse"])(
    "a message to %s is refused with JSON-RPC's error and the REST code",
    async (path) => {
      const client = await connect(stage.gateway, { path });
      const refused = await client.post(null, { raw: call(45_000) });
      expect(refused.status).toBe(400);
      expect(refused.last).toMatchObject({
        jsonrpc: "2.0",
        id: null,
        error: { code: -32_600, data: { code: "nested_too_deep" } },
      });
      const seq = Number(refused.headers.get("gatehouse-ledger"));
      expect(refused.last.error.data).toMatchObject({
        ledger: seq,
        request_id: refused.headers.get("gatehouse-request-id"),
      });
      const entry = (await ledger(stage.gateway)).find((each) => each.seq === seq);
      expect(entry).toMatchObject({ outcome: "denied", code: "nested_too_deep" });
      expect((await client.post(null, { raw: call(98) })).last.result.isError).toBeUndefined();
      expect((await client.post(null, { raw: call(99) })).status).toBe(400);
    },
  );

  test("without a session too", async () => {
    const { status, last } = await post(stage.gateway, null, { raw: `[${call(500)}]` });
    expect([status, last.error.data.code]).toEqual([400, "nested_too_deep"]);
  });

  test("the bridge answers such a line itself, with its id, and forwards the next", async () => {
    const { gateway } = stage;
    const input = new PassThrough();
    const output = new PassThrough();
    const warnings: string[] = [];
    const door = { url: new URL(`${gateway.url}/mcp`), token: gateway.admin, fetch };
    const clock = systemClock;
    const signal = new AbortController().signal;
    const done = bridge({ input, output, door, clock, warn: (text) => void warnings.push(text), signal });
    const answers: Record<string, unknown>[] = [];
    output.on("data", (data: Uint8Array) => {
      for (const line of Buffer.from(data).toString().trim().split("\n")) answers.push(JSON.parse(line));
    });
    const lines = [
      JSON.stringify(hello()),
      call(45_000),
      `{"jsonrpc":"2.0","method":"notifications/x","params":${deepText(200)}}`,
      call(98).replace('"x"', '"y"'),
    ];
    input.end(`${lines.join("\n")}\n`);
    await done;
    expect(answers.find(({ id }) => id === "x")).toMatchObject({
      error: { code: -32_600, data: { code: "nested_too_deep" } },
    });
    expect(answers.find(({ id }) => id === "y")).toMatchObject({ result: { content: [{ type: "text" }] } });
    expect(warnings).toEqual([
      "a message was skipped: The message is nested too deeply: at most 100 levels are allowed.",
    ]);
  });
});
