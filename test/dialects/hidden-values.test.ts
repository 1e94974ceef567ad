/** Hostile providers that send numbers and other values in place of texts. Clients print them. */
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
} from "./hidden-support.ts";

const providers = useProviders();
const { post, evidence } = providers;

/** A card number. Clients that do not check types print it like text. */
const NUMBER = 4111111111111111;
/** A number that JavaScript cannot represent, but Python can. */
const LONG = "41111111111111111111";
const delta = (type: string, more: object) =>
  typed({ type: "content_block_delta", index: 0, delta: { type, ...more } });
const tool = (input: unknown) => block({ type: "tool_use", id: "t", name: "n", input });
const call = (more: object) => chunk({ tool_calls: [{ index: 0, ...more }] });
const fn = (type: string, more: object) =>
  typed({ type: `response.function_call_arguments.${type}`, item_id: "f", output_index: 1, ...more });
const textEvent = (type: string, more: object) =>
  typed({ type: `response.output_text.${type}`, ...at, ...more });
const long = (event: string) => event.replaceAll("LONG", LONG).replaceAll(`"${LONG}"`, LONG);

describe("a value that replaces a text is in the evidence:", () => {
  test("Anthropic's client shows a number at the beginning of a block", async () => {
    providers.parts = [start() + block({ text: NUMBER }) + text(" is it."), finish, stop];
    const client = new Anthropic({
      apiKey: providers.gateway.admin,
      baseURL: providers.gateway.url,
      maxRetries: 0,
    });
    const messages = client.messages.stream({ model: "messages/m", max_tokens: 9, messages: [] });
    expect(await messages.finalText()).toBe(`${NUMBER} is it.`);
    expect(await evidence()).toContain(String(NUMBER));
  });

  const begun = start() + block();
  const values = [NUMBER, true, [NUMBER], { [NUMBER]: null }, {}];
  const named = values.map((value) => [JSON.stringify(value), value] as const);
  const each = (kind: string, events: (value: unknown) => string) =>
    named.map(([name, value]) => [`${kind}: ${name}`, events(value)] as const);

  test.each([
    ...each("a block's text", (value) => start() + block({ text: value }) + text("x")),
    ...each(
      "a block's thinking",
      (value) =>
        start() + block({ type: "thinking", thinking: value }) + delta("thinking_delta", { thinking: "x" }),
    ),
    ...each("a text delta", (value) => begun + delta("text_delta", { text: value }) + text("x")),
    ...each(
      "a part of an input",
      (value) => start() + tool({}) + delta("input_json_delta", { partial_json: value }),
    ),
    ["an input", start() + tool(NUMBER) + delta("input_json_delta", { partial_json: "{}" })],
    ["a signature", start() + block({ signature: NUMBER }) + delta("signature_delta", { signature: "x" })],
    ["citations", start() + block({ citations: NUMBER }) + delta("citations_delta", { citation: {} })],
    ["an unknown member of a delta", begun + delta("text_delta", { text: "x", more: NUMBER })],
    ["an unknown member of an event", begun + typed({ type: "ping", more: true })],
    ["the index of a block that ends", begun + typed({ type: "content_block_stop", index: "x" })],
    [
      "a member that a text replaces",
      begun + ["x", "y"].map((_, at) => typed({ type: "message_delta", delta: { x: at } })).join(""),
    ],
    ["content", begun + typed({ type: "message_delta", delta: { content: NUMBER } })],
    ["a number with too many digits", long(begun + typed({ type: "message_delta", delta: { x: "LONG" } }))],
  ])("messages, %s", async (_, events) => {
    providers.parts = [events, finish, stop];
    await post("/v1/messages", { model: "messages/m", max_tokens: 9, messages: [], stream: true });
    expect(await evidence()).toBe(providers.parts.join(""));
  });

  test.each([
    ...each("content", (content) => chunk({ content }) + chunk({ content: "x" })),
    ...each("a refusal", (refusal) => chunk({ refusal }) + chunk({ refusal: "x" })),
    ...each(
      "arguments",
      (value) =>
        call({ id: "c", function: { name: "n", arguments: value } }) + call({ function: { arguments: "x" } }),
    ),
    ...each("a name", (name) => call({ id: "c", function: { name, arguments: "x" } })),
    ["a call's id", call({ id: NUMBER, function: { name: "n" } }) + call({ id: "x" })],
    ["a call's other id", call({ id: NUMBER, function: { name: "n" } }) + call({ id: 1 })],
    ["a reason", chunk({ content: "x" }, { finish_reason: NUMBER })],
    ["a member of the choice", chunk({}, { text: NUMBER }) + chunk({}, { text: "x" })],
    [
      "a member of the chunk",
      event(null, { choices: [], text: true }) + event(null, { choices: [], text: false }),
    ],
    [
      "usage",
      event(null, { choices: [], usage: HIDDEN }) + event(null, { choices: [], usage: { total_tokens: 1 } }),
    ],
    ["a number with too many digits", long(chunk({ content: "x" }, { x: "LONG" }))],
  ])("chat, %s", async (_, events) => {
    providers.parts = [events, ended, done];
    await post("/v1/chat/completions", { model: "chat/m", messages: [], stream: true });
    expect(await evidence()).toBe(providers.parts.join(""));
  });

  test.each([
    ...each("a delta", (value) => textEvent("delta", { delta: value }) + part("Fine.")),
    ...each("a text", (value) => part("Fine.") + textEvent("done", { text: value })),
    ...each("a delta of arguments", (value) => fn("delta", { delta: value })),
    ...each("arguments", (value) => fn("done", { arguments: value })),
    ...each("a part", (value) =>
      typed({ type: "response.content_part.done", ...at, part: { type: "output_text", text: value } }),
    ),
    ["an item", typed({ type: "response.output_item.done", output_index: 0, item: NUMBER })],
    [
      "a member of an item",
      typed({ type: "response.output_item.done", output_index: 0, item: { text: true } }),
    ],
    ["an unknown event", typed({ type: "response.later_kind", text: NUMBER })],
    ["a number with too many digits", long(typed({ type: "response.later_kind", index: "LONG" }))],
  ])("responses, %s", async (_, events) => {
    providers.parts = [created + added, events, completed];
    await post("/v1/responses", { model: "responses/m", input: "hi", stream: true });
    expect(await evidence()).toBe(providers.parts.join(""));
  });

  test("numbers that only count something, and numbers in arguments, are merged", async () => {
    const usage = (tokens: number) => ({ usage: { completion_tokens: tokens }, created: tokens });
    const counted = (content: string, at: number) =>
      event(null, { choices: [{ delta: { content } }], ...usage(at) });
    providers.parts = [counted("a", 1), counted("b", 2), ended, done];
    await post("/v1/chat/completions", { model: "chat/m", messages: [], stream: true });
    expect(JSON.parse(await evidence()).choices[0].message.content).toBe("ab");

    const input = (json: string) => delta("input_json_delta", { partial_json: json });
    for (const [json, kept] of [
      ['{"a":-0.25,"b":1.0}', { a: -0.25, b: 1 }],
      [`{"a":"${LONG}","b":1e2}`, { a: LONG, b: 100 }],
      [`{"a":${LONG}}`, `{"a":${LONG}}`],
      ['{"a":1e999}', '{"a":1e999}'],
    ] as const) {
      providers.parts = [start() + tool({}) + input(json), finish, stop];
      await post("/v1/messages", { model: "messages/m", max_tokens: 9, messages: [], stream: true });
      expect(JSON.parse(await evidence()).content[0].input).toEqual(kept);
    }
  });
});
