/**
 * JSON with too many members on every path into a running gateway: the input is refused, and the gateway carries on.
 */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { PassThrough } from "node:stream";
import { systemClock } from "../../src/base/clock.ts";
import { type Log, silentLog } from "../../src/base/log.ts";
import { bridge } from "../../src/mcp/bridge.ts";
import { addConnector, connect, hello } from "../mcp/support.ts";
import { type ScriptedMcp, startScriptedMcp } from "../support/scripted-mcp.ts";
import { ledger, type Stage, startStage } from "./support.ts";

setDefaultTimeout(60_000);

const MOST = 50_000;
/** `{"7919":0,…}` with this many integers as names: the slowest JSON to parse. */
const integers = (count: number): string =>
  `{${Array.from({ length: count }, (_, index) => `"${(index * 7_919) % 1_000_000_007}":0`).join()}}`;
/** `{"a":[0,…]}` with this many members in total. */
const wide = (members: number): string => `{"a":[${"0,".repeat(members - 2)}0]}`;
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
  test.each([
    ["members", wide(MOST + 1)],
    ["integers as names", integers(MOST / 4 + 1)],
  ])("whose tool arguments have too many %s is told so, and its task continues", async (_name, input) => {
    stage.upstream.script("a", (_request, call) =>
      call === 0 ? { toolCalls: [{ name: "up__echo", arguments: input }] } : { chunks: ["Never mind."] },
    );
    const task = await runTask();
    expect(task).toMatchObject({ status: "succeeded", output: "Never mind.", model: "up/a", error: null });
    expect(task.tools_called).toMatchObject([{ tool: "up.echo", status: "denied" }]);
    expect(upstream.calls).toEqual([]);
    const told = stage.upstream.requests.at(-1)?.body.messages.at(-1);
    expect(JSON.stringify(told)).toContain("have too many members: at most 50000 are allowed");
  });

  test("whose answer has an event with too many members fails, and the next one is called", async () => {
    const event = `data: {"id":"1","choices":[${integers(MOST / 4)}]}\n\n`;
    stage.upstream.script("a", { rawBytes: [encode(event)] });
    stage.upstream.script("b", { chunks: ["I can."] });
    expect(await runTask()).toMatchObject({ status: "succeeded", output: "I can.", model: "up/b" });
  });
});

test("a tool's answer with too many members is a failed call, inside and outside of tasks", async () => {
  upstream.answer(() => ({ content: [], structuredContent: JSON.parse(integers(MOST / 2)) }));
  const { gateway } = stage;
  const direct = await gateway.call("POST", "/v1/tools/up.echo/call", { body: { arguments: {} } });
  expect([direct.status, direct.body.status]).toEqual([200, "failed"]);
  expect(JSON.stringify(direct.body)).toContain("more than 100000 members");
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
  expect(outcomes[0]).toMatchObject({ code: "too_large" });
});

describe("over MCP", () => {
  const call = (input: string): string =>
    `{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"up__echo","arguments":${input}}}`;
  test.each(["/mcp", "/mcp/sse"])("a message to %s is refused, and the next is accepted", async (path) => {
    const client = await connect(stage.gateway, { path });
    const refused = await client.post(null, { raw: call(wide(MOST)) });
    expect([refused.status, refused.last.code]).toEqual([413, "body_too_large"]);
    expect(refused.last.detail).toBe("The body has too many members: at most 50000 are allowed.");
    expect((await client.post(null, { raw: call(integers(MOST / 4)) })).status).toBe(413);
    expect((await client.post(null, { raw: call(wide(9_000)) })).last.result.isError).toBeUndefined();
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
    const parts: Uint8Array[] = [];
    output.on("data", (data: Uint8Array) => void parts.push(data));
    const lines = [
      JSON.stringify(hello()),
      call(integers(MOST / 4)),
      `{"jsonrpc":"2.0","method":"notifications/x","params":${wide(MOST)}}`,
      call(wide(1_000)).replace('"x"', '"y"'),
    ];
    input.end(`${lines.join("\n")}\n`);
    await done;
    const answers: { readonly id: unknown }[] = Buffer.concat(parts)
      .toString()
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(answers.find(({ id }) => id === "x")).toMatchObject({
      error: { data: { code: "body_too_large" } },
    });
    expect(answers.find(({ id }) => id === "y")).toMatchObject({ result: { content: [{ type: "text" }] } });
    expect(warnings).toEqual([
      "a message was skipped: The message has too many members: at most 50000 are allowed.",
    ]);
  });
});
