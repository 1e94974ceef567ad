/** Strings in a request or an answer that contain JSON share one limit, and are parsed once. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Problem } from "../../../src/base/errors.ts";
import { CallableModels } from "../../../src/dialects/callable-model.ts";
import { CHAT } from "../../../src/dialects/chat/chat.ts";
import type { ClientRequest } from "../../../src/dialects/client-request.ts";
import type { ClientModel } from "../../../src/models/gateway.ts";
import { startGateway, type TestGateway } from "../../support/gateway.ts";

/** More than a third of the limit for all texts. */
const WIDE = 20_000;

let gateway: TestGateway;
/** The arguments of the tool calls in the model's answer. */
let answered: readonly string[] = [];
let requests = 0;
const upstream = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  async fetch(request) {
    requests++;
    await request.arrayBuffer();
    const usage = { input_tokens: 1, output_tokens: 1 };
    if (new URL(request.url).pathname.endsWith("/messages")) {
      const content = [{ type: "text", text: "Fine." }];
      return Response.json({ id: "m", type: "message", role: "assistant", model: "m", content, usage });
    }
    const calls = answered.map((text, at) => ({
      ...{ id: `c${at}`, type: "function", function: { name: "t", arguments: text } },
    }));
    const message = {
      role: "assistant",
      content: "Fine.",
      ...(calls.length > 0 ? { tool_calls: calls } : {}),
    };
    return Response.json({ id: "c", choices: [{ index: 0, message, finish_reason: "stop" }] });
  },
});

beforeAll(async () => {
  const url = `http://127.0.0.1:${upstream.port}`;
  gateway = await startGateway({
    yaml: `
providers:
  claude: { kind: anthropic, base_url: "${url}", api_key: sk-upstream }
  up: { kind: openai-compatible, base_url: "${url}" }
`,
  });
});
afterAll(async () => {
  await gateway.stop();
  await upstream.stop(true);
});

async function ask(path: string, body: object): Promise<{ readonly status: number; readonly text: string }> {
  const response = await fetch(gateway.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${gateway.admin}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: response.status, text: await response.text() };
}

const list = (count: number, each: (at: number) => unknown) =>
  Array.from({ length: count }, (_, at) => each(at));
const wide = (at: number) => JSON.stringify({ at, list: new Array(WIDE).fill(0) });
const USER = { role: "user", content: "hi" };

const chat = (texts: readonly string[]) => {
  const tool_calls = texts.map((text, at) => ({
    ...{ id: `c${at}`, type: "function", function: { name: "t", arguments: text } },
  }));
  const results = texts.map((_, at) => ({ role: "tool", tool_call_id: `c${at}`, content: "x" }));
  return ask("/v1/chat/completions", {
    model: "claude/m",
    messages: [USER, { role: "assistant", content: null, tool_calls }, ...results],
  });
};
const responses = (texts: readonly string[]) => {
  const calls = texts.map((text, at) => ({
    type: "function_call",
    call_id: `c${at}`,
    name: "t",
    arguments: text,
  }));
  const results = texts.map((_, at) => ({ type: "function_call_output", call_id: `c${at}`, output: "x" }));
  return ask("/v1/responses", { model: "up/m", store: false, input: [USER, ...calls, ...results] });
};

describe("tool arguments may have as many members in total as a request", () => {
  test.each([
    ["chat completions", chat, "messages[1].tool_calls[2].function.arguments"],
    ["responses", responses, "input[3].arguments"],
  ])("in %s", async (_, send, path) => {
    expect((await send([wide(0), wide(1)])).status).toBe(200);
    const before = requests;
    const { status, text } = await send([wide(0), wide(1), wide(2)]);
    expect([status, text]).toEqual([413, expect.stringContaining(`${path} has too many members`)]);
    expect(requests).toBe(before);
  });

  test("in the answer to a message", async () => {
    const message = { model: "up/m", max_tokens: 9, messages: [USER] };
    answered = [wide(0), wide(1)];
    const { status, text } = await ask("/v1/messages", message);
    expect([status, JSON.parse(text).content.length]).toEqual([200, 3]);
    answered = [wide(0), wide(1), wide(2)];
    expect((await ask("/v1/messages", message)).status).toBe(502);
    answered = [];
    const { body } = await gateway.call("GET", "/v1/ledger?action=model.call&limit=1&order=desc");
    expect(body.data[0]).toMatchObject({ outcome: "failed", code: "answer_too_large" });
  });
});

const packed = (more: object) => {
  const value = { kind: "openai-compatible", provider: "up", metadata: { up: { signature: "s" } }, ...more };
  return `gth1.${Buffer.from(JSON.stringify(value)).toString("base64url")}`;
};
const forged = (at: number) => packed({ at, list: new Array(50).fill(0) });
const SIGNED: readonly (readonly [
  name: string,
  send: (signatures: unknown[]) => Promise<{ status: number }>,
])[] = [
  [
    "responses",
    (signatures) => {
      const items = signatures.map((encrypted_content) => ({
        type: "reasoning",
        summary: [],
        encrypted_content,
      }));
      return ask("/v1/responses", { model: "up/m", store: false, input: [USER, ...items] });
    },
  ],
  [
    "messages",
    (signatures) => {
      const content = signatures.map((signature) => ({ type: "thinking", thinking: "x", signature }));
      const messages = [USER, { role: "assistant", content }, USER];
      return ask("/v1/messages", { model: "up/m", max_tokens: 9, messages });
    },
  ],
  [
    "chat completions",
    (signatures) => {
      const thoughts = signatures.map((signature) => ({ text: "x", signature }));
      const extra_content = { gatehouse: { thoughts } };
      const call = { id: "c", type: "function", function: { name: "t", arguments: "{}" }, extra_content };
      const messages = [
        ...[USER, { role: "assistant", content: null, tool_calls: [call] }],
        { role: "tool", tool_call_id: "c", content: "x" },
      ];
      return ask("/v1/chat/completions", { model: "claude/m", messages });
    },
  ],
];

describe("signatures that a client writes itself", () => {
  test.each(SIGNED)("share one limit in %s", async (_, send) => {
    expect((await send(list(1_000, forged))).status).toBe(413);
    expect((await send(list(800, forged))).status).toBe(200);
  });

  test.each(SIGNED)("are parsed only once in %s", async (_, send) => {
    expect((await send(list(2_000, () => forged(0)))).status).toBe(200);
  });

  test.each(SIGNED)("are left out in %s if they have too many members or are too long", async (_, send) => {
    const many = list(100, (at) => packed({ at, list: new Array(10_000).fill(0) }));
    expect((await send([...many, packed({ text: "x".repeat(1024 * 1024) })])).status).toBe(200);
  });
});

test("other work gets turns between the translations of a large request for the models of a tier", async () => {
  const TURNS = 4;
  let turn = 0;
  const count = () => {
    turn++;
    next = setImmediate(count);
  };
  let next = setImmediate(count);
  const translated: number[] = [];
  const models = list(
    TURNS,
    (at): ClientModel => ({
      ...{
        id: `up/${at}`,
        kind: "openai-compatible",
        native: null,
        hide: (text) => text,
        embedding: () => null,
      },
      language() {
        translated.push(turn);
        throw new Problem("unsupported_parameter", "this model takes nothing");
      },
    }),
  ) as ClientModel[];
  const body = { model: "tier:1", messages: [{ role: "user", content: "x".repeat(1024 * 1024) }] };
  const bytes = Buffer.from(JSON.stringify(body));
  const client: ClientRequest = {
    ...{ api: CHAT, request: CHAT.read(bytes, body), bytes, value: body, headers: new Headers(), query: "" },
    ...{ signal: new AbortController().signal, onRefused() {}, keep: () => () => {} },
  };
  const route = new CallableModels(models, {
    ...{ client, request: client.request, head: () => ({ id: "x", created: 1 }), workspaceId: 1 },
  });
  await expect(route.first()).rejects.toThrow("this model takes nothing");
  clearImmediate(next);
  expect(new Set(translated).size).toBe(TURNS);
});
