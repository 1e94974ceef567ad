import { afterEach, describe, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/agents/index.ts";
import { startFakeMcp } from "../../support/fake-mcp/http.ts";
import { faultOf, type Opened, open, openFake } from "./support.ts";

/** `{"value":[[…]]}`, the answer of the upstream's tool `structured`. */
function nested(levels: number): JsonObject {
  const value = JSON.parse(`${"[".repeat(levels)}${"]".repeat(levels)}`);
  return { value: { value } };
}

/** The levels around `result.structuredContent.value` in a JSON-RPC message. */
const AROUND = 3;
const REFUSED = "nested_too_deep: The connector up sent a JSON message with more than 100 levels.";

const opened: AsyncDisposable[] = [];
afterEach(async () => {
  for (const each of opened.splice(0).reverse()) await each[Symbol.asyncDispose]();
});

function overHttp(type: "http" | "sse", answers: "json" | "stream"): Opened {
  const fake = startFakeMcp({ answers });
  opened.push({ [Symbol.asyncDispose]: () => fake.close() });
  const up = open({ type, url: type === "http" ? fake.url : fake.sseUrl, headers: {} });
  opened.push(up);
  return up;
}

function overStdio(): Opened {
  const up = openFake("plain");
  opened.push(up);
  return up;
}

const TRANSPORTS: readonly (readonly [string, () => Opened])[] = [
  ["over stdio", overStdio],
  ["as JSON over HTTP", () => overHttp("http", "json")],
  ["as a stream over HTTP", () => overHttp("http", "stream")],
  ["over the older SSE", () => overHttp("sse", "stream")],
];

describe.each(TRANSPORTS)("an upstream's answer %s", (_name, connect) => {
  test("that is nested too deeply fails its call, and the next one is made", async () => {
    const up = connect();
    expect(await faultOf(up.call("structured", nested(101 - AROUND)))).toStartWith(REFUSED);
    expect(await faultOf(up.call("structured", nested(2_000)))).toStartWith(REFUSED);
    const answer = await up.call("structured", nested(100 - AROUND));
    expect(answer.isError).toBeUndefined();
    expect(JSON.stringify(answer.structuredContent)).toBe(JSON.stringify(nested(100 - AROUND).value));
  });
});

/** `{"value":{"7919":0,…}}` with this many integers as names, each of which counts as four members. */
function wide(names: number): JsonObject {
  const value = Object.fromEntries(Array.from({ length: names }, (_, index) => [String(index * 7_919), 0]));
  return { value: { value } };
}

describe.each(TRANSPORTS)("an upstream's answer %s", (_name, connect) => {
  test("with too many members fails its call, and the next one is made", async () => {
    const up = connect();
    expect(await faultOf(up.call("structured", wide(25_000)))).toStartWith(
      "too_large: The connector up sent a JSON message with more than 100000 members.",
    );
    const answer = await up.call("structured", wide(24_900));
    expect(JSON.stringify(answer.structuredContent)).toBe(JSON.stringify(wide(24_900).value));
  });
});

test("an unrequested message that is nested too deeply is ignored, like one that is not JSON-RPC", async () => {
  const program = `
    const deep = "[".repeat(50_000) + "]".repeat(50_000);
    process.stdout.write('{"jsonrpc":"2.0","method":"notifications/x","params":' + deep + "}\\n");
    process.stdout.write(deep + "\\n");
    await import(process.argv[1]);`;
  const fake = new URL("../../support/fake-mcp/stdio.ts", import.meta.url).pathname;
  const args = ["-e", program, fake, "plain"];
  const up = open({ type: "stdio", command: process.execPath, args, env: {} });
  opened.push(up);
  expect((await up.call("pid")).isError).toBeUndefined();
});
