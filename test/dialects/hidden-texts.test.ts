/** Hostile providers: what a client shows of a stream is in the evidence, and its end comes after the outcome. */
import { describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import {
  added,
  at,
  block,
  chunk,
  completed,
  created,
  done,
  ended,
  event,
  finish,
  HIDDEN,
  part,
  start,
  stop,
  text,
  typed,
  useProviders,
  WAIT,
} from "./hidden-support.ts";

const providers = useProviders();
const { post, lastEntry, evidence } = providers;

const DEEP = "[".repeat(120) + "]".repeat(120);

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
    providers.parts = [events, finish, stop];
    const client = new Anthropic({
      apiKey: providers.gateway.admin,
      baseURL: providers.gateway.url,
      maxRetries: 0,
    });
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
    providers.parts = [start() + block() + text("do ") + unnamed + text("delete it"), finish, stop];
    const client = new Anthropic({
      apiKey: providers.gateway.admin,
      baseURL: providers.gateway.url,
      maxRetries: 0,
    });
    const messages = client.messages.stream({ model: "messages/m", max_tokens: 9, messages: [] });
    expect(await messages.finalText()).toBe("do delete it");
    expect(await evidence()).toContain(unnamed);
  });

  test("an unknown event", async () => {
    providers.parts = [
      start() + block() + text("Fine."),
      typed({ type: "later_kind", text: HIDDEN }),
      finish,
      stop,
    ];
    await post("/v1/messages", { model: "messages/m", max_tokens: 9, messages: [], stream: true });
    expect(await evidence()).toContain(HIDDEN);
  });
});

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
    providers.parts = [events, ended, done];
    const body = await post("/v1/chat/completions", { model: "chat/m", messages: [], stream: true });
    expect(body).toContain(HIDDEN);
    expect(await evidence()).toContain(HIDDEN);
  });

  test("the input of a custom tool is counted", async () => {
    const call = { index: 0, id: "call_1", type: "custom", custom: { name: "run_sql", input: "" } };
    const more = { index: 0, custom: { input: "x".repeat(6_000) } };
    providers.parts = [chunk({ tool_calls: [call] }), chunk({ tool_calls: [more] }), ended, done];
    await post("/v1/chat/completions", { model: "chat/m", messages: [], stream: true });
    const merged = JSON.parse(await evidence());
    expect(merged.choices[0].message.tool_calls).toEqual([
      { id: "call_1", type: "custom", custom: { name: "run_sql", input: "x".repeat(6_000) } },
    ]);
    expect((await lastEntry()).detail?.output_tokens).toBeGreaterThan(1_000);
  });
});

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
    providers.parts = [created + added, events, completed];
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
    providers.parts = [events, WAIT];
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
    providers.parts = [events];
    await post("/v1/chat/completions", { model: "chat/m", messages: [], stream: true });
    expect(JSON.parse(await evidence()).choices[0].message.content).toStartWith("é");
  });

  test("the error of a broken stream is not evidence, because it has not reached the client", async () => {
    const error = event("error", { error: { message: HIDDEN } });
    providers.parts = [chunk({ content: "x" }), WAIT.replace("wait", "x"), error];
    await post("/v1/chat/completions", { model: "chat/m", messages: [], stream: true });
    expect(await evidence()).not.toContain(HIDDEN);
    expect((await lastEntry()).outcome).toBe("failed");
  });

  test("an answer that lacks a choice is incomplete", async () => {
    providers.parts = [chunk({ content: "whole" }) + ended];
    const body = await post("/v1/chat/completions", { model: "chat/m", messages: [], stream: true, n: 2 });
    expect(body).toContain('"error"');
    expect(await lastEntry()).toMatchObject({ outcome: "failed", code: "cut" });
  });
});
