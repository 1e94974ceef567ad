/** OpenAI's Responses, passed through, with OpenAI's own client. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  callItem,
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

const REPORTED = { dialect: "responses", attempt: 1, input_tokens: 9, output_tokens: 3, usage: "reported" };
const TOOL = {
  ...{ type: "function" as const, name: "weather", strict: true, description: "The weather" },
  parameters: { type: "object", properties: { city: { type: "string" } } },
};

test("a whole response is returned, and its intent and outcome are in the ledger", async () => {
  const whole = responseOf([textItem("Good evening")]);
  stage.upstream.script("first", { response: whole });
  const { data, response } = await stage
    .client()
    .responses.create({ model: "tier:1", input: "Good morning", store: false })
    .withResponse();
  expect([data.output_text, data.id]).toEqual(["Good evening", String(whole.id)]);
  expect(response.headers.get("gatehouse-model")).toBe("up/first");
  const [intent, outcome] = await stage.entriesOf(response);
  expect(String(intent?.seq)).toBe(response.headers.get("gatehouse-ledger") ?? "");
  expect(intent).toMatchObject({ phase: "intent", agent: "clerk", model: "up/first", tier: 1 });
  expect(outcome).toMatchObject({
    phase: "outcome",
    ref: intent?.seq,
    outcome: "succeeded",
    detail: REPORTED,
  });
  expect(JSON.parse(stage.text(intent, "input") ?? "")).toMatchObject({ input: "Good morning" });
  expect(JSON.parse(stage.text(outcome, "output") ?? "")).toEqual(whole);
});

test("a streamed response is returned event by event, and all of it is evidence", async () => {
  const whole = responseOf([textItem("one two three")]);
  stage.upstream.script("first", { events: eventsOf(whole) });
  const stream = stage.client().responses.stream({ model: "up/first", input: "Good morning" });
  const deltas: string[] = [];
  stream.on("response.output_text.delta", ({ delta }) => deltas.push(delta));
  const final = await stream.finalResponse();
  expect(final.output_text).toBe("one two three");
  expect(deltas.join("")).toBe("one two three");
  const { body } = await stage.gateway.call("GET", "/v1/ledger?action=model.call&order=desc&limit=2");
  const [outcome] = body.data;
  expect(outcome).toMatchObject({
    outcome: "succeeded",
    detail: { ...REPORTED, first_token_ms: expect.any(Number) },
  });
  expect(JSON.parse(stage.text(outcome, "output") ?? "")).toEqual(whole);
});

test("the client's tools are called whole and streamed, and their results go back", async () => {
  const call = callItem("weather", { city: "Bern" });
  stage.upstream.script("first", { response: responseOf([call]) });
  const asked = { model: "up/first", input: "The weather in Bern?", tools: [TOOL], store: false };
  const first = await stage.client().responses.create(asked);
  const [item] = first.output;
  if (item?.type !== "function_call") throw new Error("no call");
  expect(JSON.parse(item.arguments)).toEqual({ city: "Bern" });
  const events = eventsOf(
    responseOf([callItem("weather", { city: "Bern" }), callItem("weather", { city: "Basel" })]),
  );
  stage.upstream.script("first", { events });
  const result = { type: "function_call_output" as const, call_id: item.call_id, output: "sunny" };
  const input = [{ role: "user" as const, content: "The weather in Bern?" }, item, result];
  const final = await stage
    .client()
    .responses.stream({ ...asked, input })
    .finalResponse();
  expect(final.output.map((each) => each.type === "function_call" && each.arguments)).toEqual([
    '{"city":"Bern"}',
    '{"city":"Basel"}',
  ]);
  const sent = JSON.parse(stage.upstream.requests.at(-1)?.bytes.toString() ?? "");
  expect(sent.input.slice(1)).toEqual([{ ...call }, result]);
});

test("an incomplete response is a whole answer", async () => {
  const more = { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } };
  const whole = responseOf([textItem("Good ev")], more);
  stage.upstream.script("first", { events: eventsOf(whole) });
  const { data, response } = await stage
    .client()
    .responses.create({ model: "up/first", input: "x", stream: true, store: false })
    .withResponse();
  const types: string[] = [];
  for await (const { type } of data) types.push(type);
  expect(types.at(-1)).toBe("response.incomplete");
  expect((await stage.entriesOf(response)).at(-1)).toMatchObject({ outcome: "succeeded", detail: REPORTED });
});

test("a response whose last event omits it is assembled from the others", async () => {
  const whole = responseOf([textItem("one two"), callItem("weather", { city: "Bern" })]);
  const events = eventsOf(whole);
  const last = { ...events.at(-1), response: { ...whole, output: [] } };
  stage.upstream.script("first", { events: [...events.slice(0, -1), last] });
  const { response } = await stage.post(
    JSON.stringify({ model: "up/first", input: "x", stream: true, store: false }),
  );
  const outcome = (await stage.entriesOf(response)).at(-1);
  expect(JSON.parse(stage.text(outcome, "output") ?? "")).toEqual(whole);
});

test("tools that the provider runs are named in the ledger, and nothing else of their definitions is", async () => {
  stage.upstream.script("first", { response: responseOf([textItem("x")]) });
  const shell = (type: string) => ({ type: "shell", environment: { type } });
  const namespace = { type: "namespace", name: "n", tools: [TOOL, { type: "mcp" }] };
  const cases: [tools: object[], input: unknown, hosted: string | undefined][] = [
    [
      [TOOL, { type: "web_search" }, { type: "mcp", server_label: "s" }, { type: "secret words" }],
      "x",
      "web_search,mcp",
    ],
    [[shell("container_auto")], "x", "shell"],
    [[shell("local"), { type: "shell" }], "x", undefined],
    [[namespace], "x", "mcp"],
    // Entries stay forever, so a name of any length must not get into one.
    [[{ type: `web_search_${"1".repeat(100_000)}` }], "x", `web_search_${"1".repeat(53)}`],
    [[], [{ type: "additional_tools", tools: [{ type: "web_search" }, namespace] }], "web_search,mcp"],
  ];
  for (const [tools, input, hosted] of cases) {
    const { response } = await stage.post(JSON.stringify({ model: "up/first", input, tools, store: false }));
    expect(response.status).toBe(200);
    const entries = await stage.entriesOf(response);
    expect(entries.map(({ detail }) => detail?.hosted_tools)).toEqual([hosted, hosted]);
  }
});

test("a priced response is charged according to its usage", async () => {
  stage.upstream.script("priced", { response: responseOf([textItem("x")]) });
  const { response } = await stage.post(JSON.stringify({ model: "up/priced", input: "x", store: false }), {
    token: stage.gateway.admin,
  });
  expect((await stage.entriesOf(response)).at(-1)?.credits).toBeGreaterThan(0);
});
