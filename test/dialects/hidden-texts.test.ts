/** Hostile providers: what a client shows of a stream is in the evidence, and its end comes after the outcome. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { until } from "../support/until.ts";
import { storedText } from "./messages-support.ts";
import type { LedgerRow } from "./support.ts";

let parts: readonly string[] = [];
let gateway: TestGateway;
const upstream = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: () =>
    new Response(
      new ReadableStream({
        start(controller) {
          for (const part of parts) controller.enqueue(Buffer.from(part));
          // One that waits is left open, until the client leaves.
          if (!parts.includes(WAIT)) controller.close();
        },
      }),
      { headers: { "content-type": "text/event-stream" } },
    ),
});
const WAIT = ": wait\n\n";

beforeAll(async () => {
  const url = `http://127.0.0.1:${upstream.port}`;
  gateway = await startGateway({
    yaml: `
providers:
  messages: { kind: anthropic, base_url: "${url}", api_key: sk-upstream }
  chat: { kind: openai-compatible, base_url: "${url}" }
  responses: { kind: openai, base_url: "${url}", api_key: sk-upstream }
drain_seconds: 1
`,
  });
});
afterAll(async () => {
  await gateway.stop();
  await upstream.stop(true);
});

async function lastEntry(): Promise<LedgerRow> {
  const { body } = await gateway.call("GET", "/v1/ledger?action=model.call&limit=1&order=desc");
  return body.data[0];
}

async function evidence(): Promise<string> {
  await until(async () => (await lastEntry()).phase === "outcome");
  return storedText(gateway.dataDir, await lastEntry(), "output") ?? "";
}

const HIDDEN = "what only the client sees";
const DEEP = "[".repeat(120) + "]".repeat(120);

const event = (name: string | null, data: object | string) =>
  `${name === null ? "" : `event: ${name}\n`}data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`;
const typed = (data: { readonly type: string; readonly [name: string]: unknown }) => event(data.type, data);

const start = (content: object[] = []) =>
  typed({
    type: "message_start",
    message: {
      ...{ id: "msg_1", type: "message", role: "assistant", model: "m", content, stop_reason: null },
      usage: { input_tokens: 10, output_tokens: 1 },
    },
  });
const block = (more: object = {}, index = 0) =>
  typed({ type: "content_block_start", index, content_block: { type: "text", text: "", ...more } });
const text = (delta: string, index = 0) =>
  typed({ type: "content_block_delta", index, delta: { type: "text_delta", text: delta } });
const finish =
  typed({ type: "content_block_stop", index: 0 }) +
  typed({ type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 10 } });
const stop = typed({ type: "message_stop" });

describe("text that Anthropic's client shows from a stream is in its evidence:", () => {
  test.each([
    [
      "between two events that are JSON only when joined",
      start() + block() + event("ping", '{"type":"ping","x":[0') + text(HIDDEN) + event("ping", "0]},{},{}"),
    ],
    [
      "between two events without a name",
      start() + block() + event(null, '{"type":"ping","x":[0') + text(HIDDEN) + event(null, "0]},{},{}"),
    ],
    ["in the first event", start([{ type: "text", text: HIDDEN }]) + block({}, 1) + text("Fine.", 1)],
    [
      "before the message begins again",
      start() + block() + text(HIDDEN) + event("ping", { type: "message_start" }),
    ],
    [
      "before an event that only other clients read",
      start() +
        block() +
        text(HIDDEN) +
        event("ping", { type: "content_block_start", index: 0, content_block: {} }),
    ],
    ["after a byte order mark", `${start()}${block()}: x\n\uFEFF${text(HIDDEN)}`],
    [
      "as an input that a delta replaces",
      start() +
        block({ type: "tool_use", id: "t", name: "n", input: { a: HIDDEN } }) +
        typed({
          ...{ type: "content_block_delta", index: 0 },
          delta: { type: "input_json_delta", partial_json: "{}" },
        }),
    ],
    [
      "as an input that a second one with the same name replaces",
      start() +
        block({ type: "tool_use", id: "t", name: "n", input: {} }) +
        typed({
          ...{ type: "content_block_delta", index: 0 },
          delta: { type: "input_json_delta", partial_json: `{"a":"${HIDDEN}","a":""}` },
        }),
    ],
  ])("%s", async (_, events) => {
    parts = [events, finish, stop];
    const client = new Anthropic({ apiKey: gateway.admin, baseURL: gateway.url, maxRetries: 0 });
    const shown: string[] = [];
    const messages = client.messages.stream({ model: "messages/m", max_tokens: 9, messages: [] });
    try {
      for await (const each of messages) shown.push(JSON.stringify(each));
    } catch {
      // A client may end in an error after it has shown the text.
    }
    expect(JSON.stringify(shown)).toContain(HIDDEN);
    expect(await evidence()).toContain(HIDDEN);
  });

  test("in order, without the parts that the client left out", async () => {
    const unnamed = event(null, {
      type: "content_block_delta",
      index: 0,
      delta: { type: "text_delta", text: "not " },
    });
    parts = [start() + block() + text("do ") + unnamed + text("delete it"), finish, stop];
    const client = new Anthropic({ apiKey: gateway.admin, baseURL: gateway.url, maxRetries: 0 });
    const messages = client.messages.stream({ model: "messages/m", max_tokens: 9, messages: [] });
    expect(await messages.finalText()).toBe("do delete it");
    expect(await evidence()).toContain(unnamed);
  });

  test("an unknown event", async () => {
    parts = [start() + block() + text("Fine."), typed({ type: "later_kind", text: HIDDEN }), finish, stop];
    await post("/v1/messages", { model: "messages/m", max_tokens: 9, messages: [], stream: true });
    expect(await evidence()).toContain(HIDDEN);
  });
});

function post(path: string, body: object): Promise<string> {
  return fetch(gateway.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${gateway.admin}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  }).then((response) => response.text());
}

const chunk = (delta: object, more: object = {}) =>
  event(null, {
    id: "c",
    object: "chat.completion.chunk",
    model: "m",
    choices: [{ index: 0, delta, ...more }],
  });
const ended = chunk({}, { finish_reason: "stop" });
const done = "data: [DONE]\n\n";

describe("text that a client shows from a chat completion is in its evidence:", () => {
  test.each([
    [
      "a call of a custom tool",
      chunk({ tool_calls: [{ index: 0, id: "c", custom: { name: "n", input: HIDDEN } }] }),
    ],
    [
      "between two chunks that are JSON only when joined",
      `data: {"x":[0\n\n${chunk({ content: HIDDEN })}data: 0]},{},{}\n\n`,
    ],
    ["a choice that is not a delta", event(null, { choices: [{ index: 0, message: { content: HIDDEN } }] })],
    ["a choice that is a text", event(null, { choices: [HIDDEN] })],
    [
      "a member of the chunk",
      event(null, { choices: [], text: HIDDEN }) + event(null, { choices: [], text: "Fine." }),
    ],
    [
      "a chunk that is nested deeply",
      chunk({ content: HIDDEN }, { logprobs: "DEEP" }).replace('"DEEP"', DEEP),
    ],
  ])("%s", async (_, events) => {
    parts = [events, ended, done];
    const body = await post("/v1/chat/completions", { model: "chat/m", messages: [], stream: true });
    expect(body).toContain(HIDDEN);
    expect(await evidence()).toContain(HIDDEN);
  });

  test("the input of a custom tool is counted", async () => {
    const call = { index: 0, id: "call_1", type: "custom", custom: { name: "run_sql", input: "" } };
    const more = { index: 0, custom: { input: "x".repeat(6_000) } };
    parts = [chunk({ tool_calls: [call] }), chunk({ tool_calls: [more] }), ended, done];
    await post("/v1/chat/completions", { model: "chat/m", messages: [], stream: true });
    const merged = JSON.parse(await evidence());
    expect(merged.choices[0].message.tool_calls).toEqual([
      { id: "call_1", type: "custom", custom: { name: "run_sql", input: "x".repeat(6_000) } },
    ]);
    expect((await lastEntry()).detail?.output_tokens).toBeGreaterThan(1_000);
  });
});

const answered = (text: string) => ({
  ...{ id: "resp_1", object: "response", created_at: 1, model: "m" },
  output: [
    {
      type: "message",
      id: "m",
      role: "assistant",
      content: [{ type: "output_text", text, annotations: [] }],
    },
  ],
});
const created = typed({ type: "response.created", response: { ...answered(""), output: [] } });
const completed = typed({
  type: "response.completed",
  response: { ...answered("Fine."), status: "completed" },
});
const at = { item_id: "m", output_index: 0, content_index: 0 };
const added = typed({
  ...{ type: "response.output_item.added", output_index: 0 },
  item: { type: "message", id: "m", role: "assistant", content: [] },
});
const part = (delta: string) => typed({ type: "response.output_text.delta", ...at, delta });

describe("text that a client shows from a response is in its evidence:", () => {
  test.each([
    [
      "deltas that the last event leaves out",
      part(HIDDEN.slice(0, 9)) + part(HIDDEN.slice(9)) + part("Fine."),
    ],
    [
      "an item that the last event leaves out",
      typed({ type: "response.output_item.done", output_index: 1, item: { type: "message", text: HIDDEN } }),
    ],
    ["a part that another one replaces", typed({ type: "response.output_text.done", ...at, text: HIDDEN })],
    ["an unknown event", typed({ type: "response.later_kind", text: HIDDEN })],
    [
      "a delta whose place is not a number",
      typed({ type: "response.output_text.delta", output_index: { toString: 1 }, delta: HIDDEN }),
    ],
    [
      "between two events that are JSON only when joined",
      `data: {"x":[0\n\n${part(HIDDEN)}data: 0]},{},{}\n\n`,
    ],
  ])("%s", async (_, events) => {
    parts = [created + added, events, completed];
    await post("/v1/responses", { model: "responses/m", input: "hi", stream: true });
    expect((await evidence()).replaceAll(/"\}\n\nevent.*\ndata.*"delta":"/g, "")).toContain(HIDDEN);
    expect((await lastEntry()).outcome).toBe("succeeded");
  });
});

describe("no end of an answer reaches a client before its outcome:", () => {
  const whole = start() + block() + text("All of it.") + finish;
  const deep = (name: string, type = name) => event(name, `{"type":"${type}","x":${DEEP}}`);
  test.each([
    ["message_stop, nested deeply", "messages", whole + deep("message_stop")],
    ["message_stop, only in its data, nested deeply", "messages", whole + deep("ping", "message_stop")],
    [
      "message_stop, with an escaped letter",
      "messages",
      whole + event("content_block_stop", '{"type":"m\\u0065ssage\\u005fstop"}'),
    ],
    ["message_stop, only by its name", "messages", whole + event("message_stop", { type: "ping" })],
    ["message_stop, after a byte order mark", "messages", `${whole}: x\n\uFEFF${stop}`],
    ["[DONE] with more text", "chat", `${chunk({ content: "x" })}${ended}data: [DONE]x\n\n`],
    ["[DONE] after a byte order mark", "chat", `${chunk({ content: "x" })}${ended}: x\n\uFEFF${done}`],
    ["[DONE] in a second line", "chat", `${chunk({ content: "x" })}${ended}data: {}\n${done}`],
    [
      "response.completed, nested deeply",
      "responses",
      created + added + part("x") + deep("response.completed"),
    ],
    [
      "response.completed, with an escaped letter",
      "responses",
      created + added + part("x") + event("ping", '{"type":"respons\\u0065\\u002ecompleted","response":{}}'),
    ],
    [
      "response.completed, only by its name",
      "responses",
      created + event("response.completed", { type: "x" }),
    ],
  ])("%s", async (_, model, events) => {
    parts = [events, WAIT];
    const paths: Record<string, string> = { messages: "/v1/messages", chat: "/v1/chat/completions" };
    const prompt = { max_tokens: 9, messages: [{ role: "user", content: "hi" }] };
    const request = model === "responses" ? { input: "hi" } : prompt;
    const body = await post(paths[model] ?? "/v1/responses", {
      model: `${model}/m`,
      stream: true,
      ...request,
    });
    // What the provider leaves open has ended: by its last event, or as broken.
    const { phase, outcome } = await lastEntry();
    expect([phase, outcome]).toEqual(["outcome", body.includes('"error"') ? "failed" : "succeeded"]);
  });

  test.each([
    [
      "chunks in which letters are escaped as usual",
      `${chunk({ content: "é" }).replace("é", "\\u00e9\\u003c")}${ended}${done}`,
    ],
    [
      "a comment, an id and a retry time",
      `: x\n\nid: 1\nretry: 3\n${chunk({ content: "é" })}${ended}${done}`,
    ],
  ])("%s are merged", async (_, events) => {
    parts = [events];
    await post("/v1/chat/completions", { model: "chat/m", messages: [], stream: true });
    expect(JSON.parse(await evidence()).choices[0].message.content).toStartWith("é");
  });

  test("the error of a broken stream is not evidence, because it has not reached the client", async () => {
    const error = event("error", { error: { message: HIDDEN } });
    parts = [chunk({ content: "x" }), WAIT.replace("wait", "x"), error];
    await post("/v1/chat/completions", { model: "chat/m", messages: [], stream: true });
    expect(await evidence()).not.toContain(HIDDEN);
    expect((await lastEntry()).outcome).toBe("failed");
  });

  test("an answer that lacks a choice is incomplete", async () => {
    parts = [chunk({ content: "whole" }) + ended];
    const body = await post("/v1/chat/completions", { model: "chat/m", messages: [], stream: true, n: 2 });
    expect(body).toContain('"error"');
    expect(await lastEntry()).toMatchObject({ outcome: "failed", code: "cut" });
  });
});
