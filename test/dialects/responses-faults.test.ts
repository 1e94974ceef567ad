/** Providers of Responses that fail: what the client gets, and what the ledger records. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { sse } from "../support/fake-messages.ts";
import type { ResponsesBehaviour } from "../support/fake-responses.ts";
import { until } from "../support/until.ts";
import {
  eventsOf,
  openResponsesStage,
  type ResponsesStage,
  responseOf,
  textItem,
} from "./responses-support.ts";

let stage: ResponsesStage;
beforeAll(async () => {
  stage = await openResponsesStage();
});
afterAll(() => stage.stop());

const ask = (model: string, stream: boolean) => JSON.stringify({ model, stream, input: "hi" });
const WHOLE = responseOf([textItem("one two three")]);
const EVENTS = eventsOf(WHOLE);
const FAILED = { ...WHOLE, status: "failed", error: { code: "server_error", message: "boom" } };

type Fault = [name: string, behaviour: ResponsesBehaviour, status: number, code: string, reason: string];
const BEFORE: Fault[] = [
  ["answers 500", { status: 500 }, 502, "provider_failed", "http_500"],
  ["refuses our key", { status: 401 }, 502, "provider_failed", "http_401"],
  ["is busy", { status: 429, headers: { "retry-after": "7" } }, 429, "provider_busy", "rate_limited"],
  ["answers 504", { status: 504 }, 504, "provider_timeout", "timeout"],
  ["refuses the request", { status: 400, message: "no such tool" }, 400, "provider_refused", "http_400"],
];

describe("a provider that", () => {
  for (const stream of [false, true]) {
    test.each(BEFORE)(
      `%s, asked for ${stream ? "a stream" : "a whole answer"}`,
      async (_, behaviour, status, code, reason) => {
        stage.upstream.script("alone", behaviour);
        const { response, bytes } = await stage.post(ask("up/alone", stream));
        const { error } = JSON.parse(bytes.toString());
        expect([response.status, error.code]).toEqual([status, code]);
        if (status === 400) expect(error.message).toContain("no such tool");
        expect(response.headers.get("retry-after")).toBe(behaviour.headers?.["retry-after"] ?? null);
        const entries = await stage.entriesOf(response);
        expect(entries.map((entry) => [entry.phase, entry.outcome, entry.code])).toEqual([
          ["intent", "allowed", null],
          ["outcome", "failed", reason],
        ]);
      },
    );
  }

  const at = (index: number) => EVENTS.slice(0, index);
  const ERROR = { type: "error", code: "server_error", message: "boom", param: null, sequence_number: 6 };
  const MIDDLE: [name: string, behaviour: ResponsesBehaviour, reason: string][] = [
    ["cuts the connection", { events: EVENTS, cutAfter: 6 }, "connection"],
    ["ends without response.completed", { events: EVENTS.slice(0, -1) }, "cut"],
    [
      "ends in the middle of response.completed",
      { parts: [...EVENTS.slice(0, -1).map(sse), Buffer.from('event: response.completed\ndata: {"type":')] },
      "cut",
    ],
    [
      "sends half an event and ends",
      { parts: [...at(6).map(sse), Buffer.from('data: {"type":"respo')] },
      "cut",
    ],
    ["reports an error", { events: [...at(6), ERROR] }, "error"],
    [
      "reports that it failed",
      { events: [...at(6), { type: "response.failed", response: FAILED }] },
      "error",
    ],
    [
      "reports an error only by the event's name",
      { parts: [...at(6).map(sse), Buffer.from("event: error\ndata: oh\n\n")] },
      "error",
    ],
  ];
  test.each(MIDDLE)("%s in the middle of a stream", async (_, behaviour, reason) => {
    // An error that came together with the first events would fail the call before its answer has begun.
    const { promise: gate, resolve: begun } = Promise.withResolvers<void>();
    stage.upstream.script("alone", { ...behaviour, gate });
    const { response, bytes } = await stage.post(ask("up/alone", true), { begun });
    const text = bytes.toString();
    const [error, failed] = text
      .trimEnd()
      .split("\n\n")
      .slice(-2)
      .map((event) => JSON.parse(event.slice(event.indexOf("data: ") + 6)));
    expect(error).toMatchObject({
      type: "error",
      code: "provider_failed",
      error: { code: "provider_failed" },
    });
    expect(failed).toMatchObject({
      type: "response.failed",
      sequence_number: error.sequence_number + 1,
      response: { id: WHOLE.id, status: "failed", error: { code: "server_error" } },
    });
    expect(failed.response.output[0].content[0].text).toStartWith("one tw");
    // Later than everything sent before.
    const sent = [...text.matchAll(/"sequence_number":(\d+)/g)].map(([, number]) => Number(number));
    expect(sent).toEqual(sent.toSorted((first, second) => first - second));
    expect(new Set(sent).size).toBe(sent.length);
    expect(text).not.toContain("boom");
    expect(text).not.toContain("event: response.completed\n");
    const [, outcome] = await stage.entriesOf(response);
    expect(outcome).toMatchObject({ outcome: "failed", code: reason });
    expect(stage.text(outcome, "output")).toContain("one tw");
  });

  test("breaks off makes OpenAI's client throw, both directly and in its helper", async () => {
    stage.upstream.script("alone", { events: EVENTS, cutAfter: 6 });
    const request = { model: "up/alone", input: "hi" };
    const { data, response } = await stage
      .client()
      .responses.create({ ...request, stream: true })
      .withResponse();
    const read = async () => {
      for await (const event of data) expect(event.type).not.toBe("response.completed");
    };
    expect(await read().catch((thrown: unknown) => thrown)).toBeInstanceOf(OpenAI.APIError);
    expect((await stage.entriesOf(response))[1]).toMatchObject({ outcome: "failed" });
    const helper = stage.client().responses.stream(request).finalResponse();
    expect(await helper.catch((thrown: unknown) => thrown)).toBeInstanceOf(OpenAI.APIError);
  });

  test.each<[string, ResponsesBehaviour, boolean]>([
    ["answers 500", { status: 500 }, true],
    ["reports an error at once", { events: [{ type: "error", message: "boom" }] }, true],
    ["sends nothing", { parts: [] }, true],
    ["reports in a whole answer that it failed", { response: FAILED }, false],
  ])("%s is followed by the tier's next model", async (_, behaviour, stream) => {
    const whole = responseOf([textItem("from the next")]);
    stage.upstream.script("first", behaviour);
    stage.upstream.script("next", stream ? { events: eventsOf(whole) } : { response: whole });
    const { response, bytes } = await stage.post(ask("tier:1", stream));
    expect([response.status, response.headers.get("gatehouse-model")]).toEqual([200, "up/next"]);
    expect(bytes.toString()).toContain("from the next");
    const entries = await stage.entriesOf(response);
    expect(entries.map(({ phase, model, outcome }) => [phase, model, outcome])).toEqual([
      ["intent", "up/first", "allowed"],
      ["outcome", "up/first", "failed"],
      ["intent", "up/next", "allowed"],
      ["outcome", "up/next", "succeeded"],
    ]);
  });

  test("answers with something that is not JSON passes, and its usage is estimated", async () => {
    const headers = { "content-type": "text/html" };
    stage.upstream.script("alone", { parts: [Buffer.from("<html>oops</html>")], headers });
    const { response, bytes } = await stage.post(ask("up/alone", false));
    expect([response.status, bytes.toString()]).toEqual([200, "<html>oops</html>"]);
    expect((await stage.entriesOf(response))[1]).toMatchObject({ detail: { usage: "estimated" } });
  });

  test("sends an event without an end breaks the stream", async () => {
    const part = Buffer.from("x".repeat(1024 * 1024));
    const parts = [...EVENTS.slice(0, 6).map(sse), ...Array.from({ length: 6 }, () => part)];
    stage.upstream.script("alone", { parts });
    const { response, bytes } = await stage.post(ask("up/alone", true));
    expect(bytes.toString()).toContain("event: response.failed");
    expect((await stage.entriesOf(response))[1]).toMatchObject({ outcome: "failed" });
  });
});

test("a provider that falls silent is abandoned, before and during its answer", async () => {
  const short = await openResponsesStage({ timeoutMs: 300 });
  try {
    short.upstream.script("alone", { events: EVENTS, hangAfter: 6 });
    const { response, bytes } = await short.post(ask("up/alone", true));
    expect(bytes.toString()).toContain('"code":"provider_timeout"');
    expect((await short.entriesOf(response))[1]).toMatchObject({ outcome: "failed", code: "timeout" });
    short.upstream.script("alone", { events: EVENTS, hangAfter: 0 });
    expect((await short.post(ask("up/alone", true))).response.status).toBe(504);
  } finally {
    await short.stop();
  }
});

test("the last event is not sent before the outcome is on disk, and all earlier events are", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  stage.upstream.script("alone", { events: EVENTS, gate: promise });
  const { data, response } = await stage
    .client()
    .responses.create({ model: "up/alone", input: "hi", stream: true })
    .withResponse();
  for await (const { type } of data) {
    const entries = await stage.entriesOf(response);
    expect(entries).toHaveLength(type === "response.completed" ? 2 : 1);
    if (type === "response.output_item.done") resolve();
  }
});

test("a client that leaves ends the upstream request, and is charged for the usage so far", async () => {
  stage.upstream.script("priced", { events: EVENTS, hangAfter: 6 });
  const { data, response } = await stage
    .client(stage.gateway.admin)
    .responses.create({ model: "up/priced", input: "hi there", stream: true })
    .withResponse();
  for await (const { type } of data) if (type === "response.output_text.delta") break;
  await until(() => stage.upstream.requests.at(-1)?.aborted === true);
  await until(async () => (await stage.entriesOf(response)).length === 2);
  const [, outcome] = await stage.entriesOf(response);
  expect(outcome).toMatchObject({ outcome: "cancelled", detail: { usage: "estimated" } });
  expect(outcome?.credits ?? 0).toBeGreaterThan(0);
});

test("a stop ends an open stream with the error events, and a waiting call with 409", async () => {
  await stage.gateway.agent("runner");
  const token = await stage.gateway.token({ agent: "runner" });
  stage.upstream.script("alone", { events: EVENTS, hangAfter: 6 });
  const { data, response } = await stage
    .client(token)
    .responses.create({ model: "up/alone", input: "hi", stream: true })
    .withResponse();
  const read = async () => {
    for await (const { type } of data) {
      if (type === "response.output_text.delta") await stage.gateway.call("POST", "/v1/agents/runner/stop");
    }
  };
  expect(await read().catch((thrown: unknown) => thrown)).toMatchObject({ code: "agent_stopped" });
  expect((await stage.entriesOf(response))[1]).toMatchObject({ outcome: "cancelled", code: "agent_stopped" });
  const { response: refused } = await stage.post(ask("up/alone", false), { token });
  expect([refused.status, refused.headers.get("x-should-retry")]).toEqual([409, "false"]);
});
