/** Messages to providers that do not support that API: what is refused, and what happens when a provider fails. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import type { Behaviour } from "../../support/fake-model.ts";
import { until } from "../../support/until.ts";
import {
  chatEvent,
  openTranslationStage,
  type TranslationStage,
  USER,
  WEATHER,
} from "./translation-support.ts";

let stage: TranslationStage;
beforeAll(async () => {
  stage = await openTranslationStage();
});
afterAll(() => stage.stop());

const ask = (model: string, stream: boolean, more: object = {}) =>
  stage.post({ model, max_tokens: 100, messages: USER, stream, ...more });
const requests = () =>
  stage.chat.requests.length + stage.google.requests.length + stage.responses.requests.length;

test("a forbidden model is refused, and no request is sent to its provider", async () => {
  const before = requests();
  for (const model of ["up/never", "gemini/never", "work/never"]) {
    const { status, headers, text } = await ask(model, true);
    expect([status, headers.get("gatehouse-code")]).toEqual([403, "model_forbidden"]);
    expect(JSON.parse(text).error.type).toBe("permission_error");
  }
  expect(requests()).toBe(before);
});

test("a field that cannot be translated is refused by name, and nothing is sent", async () => {
  const image = { type: "image", source: { type: "url", url: "http://169.254.169.254/latest" } };
  const cases: readonly (readonly [model: string, more: object, path: string])[] = [
    ["up/first", { top_k: 5 }, "top_k"],
    ["up/first", { mcp_servers: [{ type: "url" }] }, "mcp_servers"],
    ["up/first", { tools: [WEATHER, { type: "bash_20250124", name: "bash" }] }, "tools[1].type"],
    ["up/first", { messages: [{ role: "user", content: [image] }] }, "messages[0].content[0].source.url"],
    ["work/gpt-5", { stop_sequences: ["END"] }, "stop_sequences"],
    ["work/gpt-5", { thinking: { type: "between_tools" } }, "thinking.type"],
    [
      "gemini/first",
      { tool_choice: { type: "any", disable_parallel_tool_use: true } },
      "tool_choice.disable_parallel_tool_use",
    ],
    ["gemini/first", { messages: [{ role: "user", content: [image] }] }, "messages[0].content[0].source.url"],
    [
      "builtin/extractive",
      { output_config: { format: { type: "json_schema", schema: {} } } },
      "output_config.format",
    ],
  ];
  const before = requests();
  for (const [model, more, path] of cases) {
    for (const stream of [false, true]) {
      const { status, headers, text } = await ask(model, stream, more);
      expect([path, status, headers.get("gatehouse-code")]).toEqual([path, 400, "unsupported_parameter"]);
      const told = JSON.parse(text);
      expect(told).toMatchObject({ type: "error", error: { type: "invalid_request_error" } });
      expect(told.error.message).toStartWith(`${path} `);
      expect(told.request_id).toBe(headers.get("request-id"));
    }
  }
  expect(requests()).toBe(before);
});

test("a field that only some models lack is refused too, and the call is in the ledger", async () => {
  stage.responses.script([]);
  const { status, text } = await ask("work/gpt-5", false, { temperature: 0.5 });
  expect([status, JSON.parse(text).error.message]).toEqual([400, expect.stringContaining("temperature")]);
  expect((await stage.lastEntries()).map(({ phase }) => phase)).toEqual(["intent", "outcome"]);
});

type Fault = [name: string, behaviour: Behaviour, status: number, code: string, type: string];
const FAULTS: Fault[] = [
  ["answers 500", { status: 500 }, 502, "provider_failed", "api_error"],
  ["is busy", { status: 429, headers: { "retry-after": "7" } }, 429, "provider_busy", "rate_limit_error"],
  ["refuses the request", { status: 400 }, 400, "provider_refused", "invalid_request_error"],
];

describe("a provider of another dialect that", () => {
  for (const stream of [false, true]) {
    test.each(FAULTS)(`%s (stream: ${stream})`, async (_, behaviour, status, code, type) => {
      stage.chat.script("alone", behaviour);
      const { status: got, headers, text } = await ask("up/alone", stream);
      expect([got, headers.get("gatehouse-code")]).toEqual([status, code]);
      expect(JSON.parse(text)).toMatchObject({ type: "error", error: { type } });
      expect(headers.get("retry-after")).toBe(behaviour.headers?.["retry-after"] ?? null);
      expect((await stage.lastEntries()).at(-1)).toMatchObject({ phase: "outcome", outcome: "failed" });
    });
  }

  const tool = (index: number) => ({
    index,
    id: `c${index}`,
    function: { name: "weather", arguments: "{}" },
  });
  const BROKEN: [name: string, behaviour: Behaviour][] = [
    ["stops without an end", { chunks: ["one"], noFinish: true }],
    ["sends no JSON", { rawBytes: [chatEvent({ content: "one" }), Buffer.from("data: {no\n\n")] }],
    [
      "calls too many tools",
      {
        rawBytes: [
          chatEvent({ content: "one" }),
          ...Array.from({ length: 130 }, (_, index) => chatEvent({ tool_calls: [tool(index)] })),
          chatEvent({}, "tool_calls"),
          Buffer.from("data: [DONE]\n\n"),
        ],
        delayMs: 0,
      },
    ],
  ];
  test.each(BROKEN)("%s in the middle of a stream ends it with an error event", async (_, behaviour) => {
    stage.chat.script("alone", behaviour);
    const { status, text } = await ask("up/alone", true, { tools: [WEATHER] });
    expect(status).toBe(200);
    expect(text).toContain('"text":"one"');
    const last = text.trimEnd().split("\n\n").at(-1) ?? "";
    expect(last).toStartWith("event: error\n");
    expect(JSON.parse(last.slice(last.indexOf("data: ") + 6))).toMatchObject({
      ...{ type: "error", error: { type: "api_error" } },
    });
    expect(text).not.toContain("message_stop");
    const outcome = (await stage.lastEntries()).at(-1);
    expect(outcome).toMatchObject({ outcome: "failed", detail: { usage: "estimated" } });

    stage.chat.script("alone", behaviour);
    const stream = stage.client.messages.stream({ model: "up/alone", max_tokens: 100, messages: USER });
    expect(await stream.finalMessage().catch((error: unknown) => error)).toBeInstanceOf(Anthropic.APIError);
  });

  test("is cut off after the client has read a part ends the stream with an error event", async () => {
    const cut = Promise.withResolvers<never>();
    stage.chat.script("alone", { chunks: ["one"], gate: cut.promise });
    const stream = stage.client.messages.stream({ model: "up/alone", max_tokens: 100, messages: USER });
    stream.once("text", () => cut.reject(new Error("The script cuts here.")));
    expect(await stream.finalMessage().catch((error: unknown) => error)).toBeInstanceOf(Anthropic.APIError);
    expect((await stage.lastEntries()).at(-1)).toMatchObject({
      ...{ outcome: "failed", code: "connection", detail: { usage: "estimated" } },
    });
  });

  test("fails before its answer begins is followed by the tier's next model, in another dialect", async () => {
    for (const stream of [false, true]) {
      stage.google.script("first", { status: 500 });
      stage.chat.script("first", { chunks: ["from the second"] });
      const { status, headers, text } = await ask("claude-opus-9", stream);
      expect([status, headers.get("gatehouse-model")]).toEqual([200, "up/first"]);
      expect(text).toContain("from the second");
      expect((await stage.lastEntries()).map(({ model, outcome }) => [model, outcome])).toEqual([
        ["gemini/first", "allowed"],
        ["gemini/first", "failed"],
        ["up/first", "allowed"],
        ["up/first", "succeeded"],
      ]);
    }
  });
});

test("usage that the provider does not report is estimated for the ledger, and is 0 for the client", async () => {
  for (const stream of [false, true]) {
    stage.chat.script("alone", { chunks: ["Good evening"], usage: null });
    const { text } = await ask("up/alone", stream);
    expect(text).toContain('"output_tokens":0');
    const outcome = (await stage.lastEntries()).at(-1);
    expect(outcome).toMatchObject({ outcome: "succeeded", detail: { usage: "estimated", output_tokens: 3 } });
    expect(outcome?.detail?.input_tokens).toBeGreaterThan(0);
  }
});

test("a stop ends a stream with the error event, and its request to the provider", async () => {
  stage.chat.script("alone", { chunks: ["one ", "two "], hangAfter: 1 });
  const answer = ask("up/alone", true);
  await until(() => stage.chat.requests.at(-1)?.model === "alone" && stage.chat.requests.length > 0);
  await until(async () => (await stage.lastEntries()).length === 1);
  const person = await stage.gateway.token({ scopes: ["admin"], person: "Ann Example", role: "overseer" });
  await stage.gateway.call("POST", "/v1/agents/clerk/stop", { token: person });
  const { text } = await answer;
  expect(text.trimEnd().split("\n\n").at(-1)).toContain('"type":"conflict_error"');
  expect(text).not.toContain("message_stop");
  await until(() => stage.chat.requests.at(-1)?.aborted === true);
  expect((await stage.lastEntries()).at(-1)).toMatchObject({ outcome: "cancelled", code: "agent_stopped" });
  await stage.gateway.call("POST", "/v1/agents/clerk/resume", { token: person });
});
