/** Anthropic's Messages, passed through, with Anthropic's own client. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  block,
  closing,
  type MessagesStage,
  message,
  opening,
  openMessagesStage,
  textEvents,
  USER,
} from "./messages-support.ts";

let stage: MessagesStage;
beforeAll(async () => {
  stage = await openMessagesStage();
});
afterAll(() => stage.stop());

const ASK = { model: "tier:1", max_tokens: 100, messages: USER };
const TOOL = { name: "weather", input_schema: { type: "object" as const } };

test("a whole answer is returned, and its intent and outcome are in the ledger", async () => {
  const given = message([{ type: "text", text: "Good evening" }], {
    ...{ input_tokens: 7, output_tokens: 3 },
    ...{ cache_creation_input_tokens: 10, cache_read_input_tokens: 100 },
  });
  stage.upstream.script("first", { message: given });
  const { data, response } = await stage.client().messages.create(ASK).withResponse();
  expect(data).toMatchObject(given);
  expect(response.headers.get("gatehouse-model")).toBe("claude/first");
  expect(response.headers.get("request-id")).toBe(response.headers.get("gatehouse-request-id"));
  const [intent, outcome] = await stage.entriesOf(response);
  expect(intent).toMatchObject({ phase: "intent", agent: "clerk", model: "claude/first", tier: 1 });
  expect(String(intent?.seq)).toBe(response.headers.get("gatehouse-ledger") ?? "");
  expect(outcome).toMatchObject({
    ...{ phase: "outcome", ref: intent?.seq, outcome: "succeeded" },
    detail: { dialect: "messages", attempt: 1, input_tokens: 117, output_tokens: 3, usage: "reported" },
  });
  expect(JSON.parse(stage.text(intent, "input") ?? "")).toMatchObject(ASK);
  expect(JSON.parse(stage.text(outcome, "output") ?? "")).toEqual(given);
});

test("a streamed answer is returned in its events, and merged for the evidence", async () => {
  stage.upstream.script("first", { events: textEvents(["one ", "two ", "three"], 4, 3) });
  const stream = stage.client().messages.stream(ASK);
  const { response } = await stream.withResponse();
  expect(await stream.finalText()).toBe("one two three");
  const [, outcome] = await stage.entriesOf(response);
  expect(outcome).toMatchObject({
    outcome: "succeeded",
    detail: { input_tokens: 4, output_tokens: 3, usage: "reported", first_token_ms: expect.any(Number) },
  });
  const final = message([{ type: "text", text: "one two three" }], { input_tokens: 4, output_tokens: 3 });
  expect(JSON.parse(stage.text(outcome, "output") ?? "")).toEqual(final);
});

test("thinking with its signature, citations, and a tool call with its JSON are evidence", async () => {
  const thinking = [
    { type: "thinking_delta", thinking: "It may " },
    { type: "thinking_delta", thinking: "rain." },
    { type: "signature_delta", signature: "EqQB" },
  ];
  const call = { type: "tool_use", id: "toolu_1", name: "weather", input: {} };
  const pieces = ['{"city": "P', 'aris", "days"', ": [1, 2]}"];
  const citation = { type: "char_location", cited_text: "rain", document_index: 0 };
  stage.upstream.script("first", {
    events: [
      opening({ input_tokens: 20, output_tokens: 1 }),
      ...block(0, { type: "thinking", thinking: "", signature: "" }, thinking),
      ...block(1, { type: "text", text: "" }, [
        { type: "text_delta", text: "Let me look." },
        { type: "citations_delta", citation },
      ]),
      ...block(
        2,
        call,
        pieces.map((partial_json) => ({ type: "input_json_delta", partial_json })),
      ),
      ...block(3, { ...call, id: "toolu_2" }, [{ type: "input_json_delta", partial_json: '{"city": "Lo' }]),
      ...block(4, { ...call, id: "toolu_3" }, []),
      ...closing({ output_tokens: 60 }, "tool_use"),
    ],
  });
  const { data, response } = await stage
    .client()
    .messages.create({ ...ASK, tools: [TOOL], stream: true })
    .withResponse();
  let events = 0;
  for await (const _ of data) events++;
  expect(events).toBeGreaterThan(10);
  const [, outcome] = await stage.entriesOf(response);
  expect(outcome?.detail).toMatchObject({ input_tokens: 20, output_tokens: 60, usage: "reported" });
  expect(JSON.parse(stage.text(outcome, "output") ?? "")).toMatchObject({
    content: [
      { type: "thinking", thinking: "It may rain.", signature: "EqQB" },
      { type: "text", text: "Let me look.", citations: [citation] },
      { ...call, input: { city: "Paris", days: [1, 2] } },
      { ...call, id: "toolu_2", input: '{"city": "Lo' },
      { ...call, id: "toolu_3", input: {} },
    ],
    stop_reason: "tool_use",
  });
});

test("the client's own helper runs a tool over the stream", async () => {
  const call = { type: "tool_use", id: "toolu_1", name: "weather", input: {} };
  stage.upstream.script("first", {
    events: [
      opening({ input_tokens: 20, output_tokens: 1 }),
      ...block(0, call, [{ type: "input_json_delta", partial_json: '{"city":"Paris"}' }]),
      ...closing({ output_tokens: 9 }, "tool_use"),
    ],
  });
  const final = await stage
    .client()
    .messages.stream({ ...ASK, tools: [TOOL] })
    .finalMessage();
  expect(final.content).toMatchObject([{ ...call, input: { city: "Paris" } }]);
  expect(final.usage).toMatchObject({ input_tokens: 20, output_tokens: 9 });
});

test("usage: later counts replace earlier ones, cached tokens count as input, and compaction counts", async () => {
  const stream = async (start: object, ...deltas: object[]) => {
    const events = [
      opening(start),
      ...block(0, { type: "text", text: "" }, [{ type: "text_delta", text: "x" }]),
      ...deltas.map((usage) => ({ type: "message_delta", delta: { stop_reason: "end_turn" }, usage })),
      { type: "message_stop" },
    ];
    stage.upstream.script("first", { events });
    const { data, response } = await stage
      .client()
      .messages.create({ ...ASK, stream: true })
      .withResponse();
    for await (const _ of data);
    const { input_tokens, output_tokens, usage } = (await stage.entriesOf(response))[1]?.detail ?? {};
    return [input_tokens, output_tokens, usage];
  };
  const caches = { cache_creation_input_tokens: 3, cache_read_input_tokens: 40 };
  expect(await stream({ input_tokens: 5, output_tokens: 1, ...caches }, { output_tokens: 8 })).toEqual([
    48,
    8,
    "reported",
  ]);
  const later = [{ output_tokens: 8 }, { input_tokens: 6, cache_read_input_tokens: null, output_tokens: 12 }];
  expect(await stream({ input_tokens: 5, output_tokens: 1, ...caches }, ...later)).toEqual([
    49,
    12,
    "reported",
  ]);
  const iterations = [
    { type: "compaction", input_tokens: 100, output_tokens: 20 },
    { type: "message", input_tokens: 10, output_tokens: 5 },
    { type: "advisor_message", input_tokens: 1_000, output_tokens: 1_000 },
  ];
  expect(await stream({ input_tokens: 10 }, { input_tokens: 10, output_tokens: 5, iterations })).toEqual([
    110,
    25,
    "reported",
  ]);
  const fallback = [{ type: "message", input_tokens: 9, output_tokens: 0 }, { type: "fallback_message" }];
  expect(await stream({ input_tokens: 10 }, { output_tokens: 5, iterations: fallback })).toEqual([
    10,
    5,
    "reported",
  ]);
});

test("a call is charged at the price of the model that the client names", async () => {
  const given = message([{ type: "text", text: "x" }], { input_tokens: 500, output_tokens: 250 });
  stage.upstream.script("priced", { message: given });
  const { response } = await stage
    .client(stage.gateway.admin)
    .messages.create({ ...ASK, model: "claude/priced" })
    .withResponse();
  expect((await stage.entriesOf(response))[1]).toMatchObject({ model: "claude/priced", credits: 1_000_000 });
});

test("a long stream of short events is charged according to the provider's report", async () => {
  const words = Array.from({ length: 600 }, () => "a ".padEnd(3));
  stage.upstream.script("first", {
    events: textEvents(words, 4, 600).map((event) => ({ ...event, padding: " ".repeat(60) })),
  });
  const { data, response } = await stage
    .client()
    .messages.create({ ...ASK, stream: true })
    .withResponse();
  for await (const _ of data);
  const detail = (await stage.entriesOf(response))[1]?.detail;
  expect(detail).toMatchObject({ input_tokens: 4, output_tokens: 600, usage: "reported" });
  expect(detail?.disbelieved).toBeUndefined();
}, 30_000);
