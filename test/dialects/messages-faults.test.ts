/** Providers of Messages that fail: what the client gets, and what the ledger records. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import { type MessagesBehaviour, sse } from "../support/fake-messages.ts";
import { until } from "../support/until.ts";
import { type MessagesStage, message, openMessagesStage, textEvents, USER } from "./messages-support.ts";

let stage: MessagesStage;
beforeAll(async () => {
  stage = await openMessagesStage();
});
afterAll(() => stage.stop());

const ask = (model: string, stream: boolean) =>
  JSON.stringify({ model, stream, max_tokens: 10, messages: USER });
const refusal = {
  type: "invalid_request_error",
  message: "max_tokens: field required, gth_abcdefghijklmnopqrstuv",
};

type Fault = [name: string, behaviour: MessagesBehaviour, status: number, code: string, reason: string];
const BEFORE: Fault[] = [
  ["answers 500", { status: 500 }, 502, "provider_failed", "http_500"],
  ["is overloaded", { status: 529 }, 502, "provider_failed", "http_529"],
  ["refuses our key", { status: 401 }, 502, "provider_failed", "http_401"],
  ["is busy", { status: 429, headers: { "retry-after": "7" } }, 429, "provider_busy", "rate_limited"],
  ["answers 504", { status: 504 }, 504, "provider_timeout", "timeout"],
  ["refuses the request", { status: 400, error: refusal }, 400, "provider_refused", "http_400"],
];
const TYPES = new Map([
  [400, "invalid_request_error"],
  [429, "rate_limit_error"],
  [502, "api_error"],
  [504, "timeout_error"],
]);

describe("a provider that", () => {
  for (const stream of [false, true]) {
    test.each(BEFORE)(
      `%s, asked for ${stream ? "a stream" : "a whole answer"}`,
      async (_, behaviour, status, code, reason) => {
        stage.upstream.script("alone", behaviour);
        const { response, bytes } = await stage.post(ask("claude/alone", stream));
        const told = JSON.parse(bytes.toString());
        expect([response.status, response.headers.get("gatehouse-code")]).toEqual([status, code]);
        expect(told).toMatchObject({ type: "error", error: { type: TYPES.get(status) } });
        expect(response.headers.get("retry-after")).toBe(behaviour.headers?.["retry-after"] ?? null);
        if (status === 400) {
          expect(told.error.message).toContain("max_tokens: field required");
          expect(told.error.message).not.toContain("abcdefghijklmn");
        }
        const entries = await stage.entriesOf(response);
        expect(entries.map((entry) => [entry.phase, entry.outcome, entry.code])).toEqual([
          ["intent", "allowed", null],
          ["outcome", "failed", reason],
        ]);
        expect(entries[1]?.detail).toMatchObject({ input_tokens: 0, output_tokens: 0 });
      },
    );
  }

  const EVENTS = textEvents(["one", "two", "three"], 9, 3);
  const ERROR = { type: "error", error: { type: "overloaded_error", message: "Overloaded" } };
  const MIDDLE: [name: string, behaviour: MessagesBehaviour, reason: string][] = [
    ["cuts the connection", { events: EVENTS, cutAfter: 5 }, "connection"],
    ["ends without message_stop", { events: EVENTS.slice(0, -1) }, "cut"],
    [
      "ends in the middle of message_stop",
      { parts: [...EVENTS.slice(0, -1).map(sse), Buffer.from("event: mess")] },
      "cut",
    ],
    ["reports an error", { events: [...EVENTS.slice(0, 5), ERROR] }, "error"],
    [
      "reports an error only by the event's name",
      { parts: [...EVENTS.slice(0, 5).map(sse), Buffer.from("event: error\ndata: oh\n\n")] },
      "error",
    ],
  ];
  test.each(MIDDLE)("%s in the middle of a stream", async (_, behaviour, reason) => {
    // An error that came together with the first events would fail the call before its answer has begun.
    const { promise: gate, resolve: begun } = Promise.withResolvers<void>();
    stage.upstream.script("alone", { ...behaviour, gate });
    const { data, response } = await stage
      .client()
      .messages.create({ model: "claude/alone", max_tokens: 10, messages: USER, stream: true })
      .withResponse();
    begun();
    const read = async () => {
      for await (const event of data) expect(event.type).not.toBe("message_stop");
    };
    const error = await read().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(Anthropic.APIError);
    expect(error).toMatchObject({
      error: { type: "error", error: { type: "api_error" }, request_id: response.headers.get("request-id") },
    });
    const [, outcome] = await stage.entriesOf(response);
    expect(outcome).toMatchObject({ outcome: "failed", code: reason });
    // The start of the stream counts the input. The output is not counted yet, so it is estimated.
    const isCounted = reason === "cut";
    expect(outcome?.detail).toMatchObject({ input_tokens: 9, usage: isCounted ? "reported" : "estimated" });
    // If a connection breaks, the data that was sent last may be lost with it.
    const isLossy = reason === "connection";
    expect(outcome?.detail?.output_tokens).toBeOneOf(isCounted ? [3] : isLossy ? [0, 1, 2] : [2]);
    if (!isLossy) expect(stage.text(outcome, "output")).toMatch(/one.*two/s);
  });
});

test("a provider's error message is shown without its address and our key", async () => {
  const { host } = new URL(stage.upstream.url);
  const message = `x-api-key sk-upstream is not valid at ${stage.upstream.url}/messages, ${host}`;
  stage.upstream.script("alone", { status: 400, error: { type: "invalid_request_error", message } });
  const { bytes } = await stage.post(ask("claude/alone", false));
  const shown = JSON.parse(bytes.toString()).error.message;
  expect(shown).toContain("x-api-key [redacted] is not valid at [redacted]");
  expect(shown).not.toContain("sk-upstream");
  expect(shown).not.toContain(host);
});

describe("a provider's error message is shown without our key and its host", () => {
  const KEY = "sk-upstream";
  test.each([
    ["in base64", Buffer.from(KEY).toString("base64")],
    ["in hexadecimal", Buffer.from(KEY).toString("hex")],
    ["without the port", "127.0.0.1"],
  ])("%s", async (_, form) => {
    stage.upstream.script("alone", {
      status: 400,
      error: { type: "invalid_request_error", message: `<${form}>` },
    });
    const { bytes } = await stage.post(ask("claude/alone", false));
    expect(JSON.parse(bytes.toString()).error.message).not.toContain(form);
  });
});

test("an error before the answer begins, even after status 200, leads to the tier's next model", async () => {
  const whole = message([{ type: "text", text: "second" }], { input_tokens: 5, output_tokens: 1 });
  const error = { type: "error", error: { type: "overloaded_error", message: "Overloaded" } };
  for (const [behaviour, stream] of [
    [{ status: 529 }, false],
    [{ events: [error] }, true],
  ] as const) {
    stage.upstream.script("first", behaviour);
    stage.upstream.script("second", stream ? { events: textEvents(["second"], 5, 1) } : { message: whole });
    const { response, bytes } = await stage.post(ask("tier:1", stream));
    expect(response.headers.get("gatehouse-model")).toBe("claude/second");
    expect(bytes.toString()).toContain("second");
    const entries = await stage.entriesOf(response);
    expect(entries.map(({ phase, model, outcome }) => [phase, model, outcome])).toEqual([
      ["intent", "claude/first", "allowed"],
      ["outcome", "claude/first", "failed"],
      ["intent", "claude/second", "allowed"],
      ["outcome", "claude/second", "succeeded"],
    ]);
    expect(entries[1]?.detail).toMatchObject({ input_tokens: 0, output_tokens: 0 });
  }
});

test("the last event is not sent before the outcome is on disk, and all earlier events are", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  stage.upstream.script("alone", { events: textEvents(["x"], 5, 1), gate: promise });
  const { data, response } = await stage
    .client()
    .messages.create({ model: "claude/alone", max_tokens: 10, messages: USER, stream: true })
    .withResponse();
  const seen: string[] = [];
  for await (const { type } of data) {
    seen.push(type);
    if (type === "message_stop") expect(await stage.entriesOf(response)).toHaveLength(2);
    else expect(await stage.entriesOf(response)).toHaveLength(1);
    if (type === "message_delta") resolve();
  }
  expect(seen.slice(-2)).toEqual(["message_delta", "message_stop"]);
});

test("a client that leaves ends the upstream request, and is charged for the usage so far", async () => {
  stage.upstream.script("alone", { events: textEvents(["one", "two", "three"], 9, 3), hangAfter: 5 });
  const stream = stage.client().messages.stream({ model: "claude/alone", max_tokens: 10, messages: USER });
  const { response } = await stream.withResponse();
  stream.on("error", () => {});
  for await (const { type } of stream) if (type === "content_block_delta") break;
  await until(() => stage.upstream.requests.at(-1)?.aborted === true);
  await until(async () => (await stage.entriesOf(response)).length === 2);
  expect((await stage.entriesOf(response))[1]).toMatchObject({
    outcome: "cancelled",
    detail: { usage: "estimated" },
  });
});

test("a stop ends an open stream with the error event", async () => {
  await stage.gateway.agent("runner");
  const token = await stage.gateway.token({ agent: "runner" });
  stage.upstream.script("alone", { events: textEvents(["one", "two"], 9, 3), hangAfter: 5 });
  const { data, response } = await stage
    .client(token)
    .messages.create({ model: "claude/alone", max_tokens: 10, messages: USER, stream: true })
    .withResponse();
  const read = async () => {
    for await (const { type } of data) {
      if (type === "content_block_delta") {
        await stage.gateway.call("POST", "/v1/agents/runner/stop");
      }
    }
  };
  expect(await read().catch((thrown: unknown) => thrown)).toMatchObject({
    error: { type: "error", error: { type: "conflict_error" } },
  });
  expect((await stage.entriesOf(response))[1]).toMatchObject({ outcome: "cancelled", code: "agent_stopped" });
});
