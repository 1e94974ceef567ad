/** Responses of models whose providers speak another dialect, with OpenAI's own client and the AI SDK's. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createOpenAI } from "@ai-sdk/openai";
import OpenAI from "openai";
import { until } from "../../support/until.ts";
import { openTranslationStage, type TranslationStage } from "../chat/translation-support.ts";
import { block, closing, message, opening, storedText, textEvents } from "../messages-support.ts";
import { openDialectStage } from "../support.ts";

let stage: TranslationStage;
beforeAll(async () => {
  stage = await openTranslationStage();
});
afterAll(() => stage.stop());

/** The upstreams' answer "Good evening" with 7 and 3 tokens, whole and streamed. */
function greet(model: string): void {
  if (model.startsWith("gemini")) {
    stage.google.script("first", { parts: [{ text: "Good " }, { text: "evening" }] });
    return;
  }
  const usage = { input_tokens: 7, output_tokens: 3 };
  const whole = { message: message([{ type: "text", text: "Good evening" }], usage) };
  const events = { events: textEvents(["Good ", "evening"], 7, 3) };
  stage.anthropic.script("second", whole, events, whole, whole, whole);
}

/** What the provider was sent last. */
function sent(model: string) {
  const body = model.startsWith("gemini")
    ? stage.google.requests.at(-1)?.body
    : JSON.parse(stage.anthropic.requests.at(-1)?.bytes.toString() ?? "null");
  return { body, text: JSON.stringify(body) };
}

const TOOL = {
  ...{ type: "function" as const, name: "weather", description: "The weather of a town", strict: false },
  parameters: { type: "object", properties: { town: { type: "string" } }, required: ["town"] },
};
const CALLS = [{ town: "Bern" }, { town: "Basel" }];

function callTools(model: string): void {
  if (model.startsWith("gemini")) {
    const parts = CALLS.map((args, index) => ({
      functionCall: { name: "weather", args },
      ...(index === 0 ? { thoughtSignature: "c2lnbmVk" } : {}),
    }));
    stage.google.script("first", { parts });
    return;
  }
  const thinking = { type: "thinking", thinking: "Which towns?", signature: "c2lnbmVk" };
  const uses = CALLS.map((input, index) => ({
    type: "tool_use",
    id: `toolu_${index}`,
    name: "weather",
    input,
  }));
  const usage = { input_tokens: 5, output_tokens: 6 };
  const events = [
    opening(usage),
    ...block(0, { type: "thinking", thinking: "" }, [
      { type: "thinking_delta", thinking: "Which towns?" },
      { type: "signature_delta", signature: "c2lnbmVk" },
    ]),
    ...CALLS.flatMap((input, index) =>
      block(index + 1, { type: "tool_use", id: `toolu_${index}`, name: "weather", input: {} }, [
        { type: "input_json_delta", partial_json: JSON.stringify(input).slice(0, 5) },
        { type: "input_json_delta", partial_json: JSON.stringify(input).slice(5) },
      ]),
    ),
    ...closing({ output_tokens: 6 }, "tool_use"),
  ];
  const whole = message([thinking, ...uses], usage, { stop_reason: "tool_use" });
  stage.anthropic.script("second", { message: whole }, { events });
}

type Output = OpenAI.Responses.ResponseOutputItem[];
const callsIn = (output: Output) => output.filter((item) => item.type === "function_call");

describe.each(["gemini/first", "claude/second"])("%s", (model) => {
  test("answers, whole and streamed; both are in the ledger and kept", async () => {
    greet(model);
    const detail = { dialect: "responses", input_tokens: 7, output_tokens: 3, usage: "reported" };
    for (const stream of [false, true]) {
      const asked = { model, input: "Good morning", instructions: "Be kind" };
      const { responses } = stage.client;
      const response = stream ? await responses.stream(asked).finalResponse() : await responses.create(asked);
      expect(response.id).toStartWith("resp_");
      expect(response).toMatchObject({
        ...{ model, object: "response", status: "completed" },
        ...{ output_text: "Good evening", usage: { input_tokens: 7, output_tokens: 3, total_tokens: 10 } },
      });
      const [intent, outcome] = await stage.lastEntries();
      expect(intent).toMatchObject({ phase: "intent", agent: "clerk", model });
      expect(outcome).toMatchObject({ ref: intent?.seq ?? null, outcome: "succeeded", detail });
      const { output_text: text, ...kept } = await responses.retrieve(response.id);
      expect(text).toBe("Good evening");
      expect(JSON.parse(storedText(stage.gateway.dataDir, outcome, "output") ?? "")).toMatchObject({
        ...{ id: kept.id, output: kept.output },
      });
      expect(sent(model).text).toContain("Be kind");
    }
  });

  test("calls the client's tools, and their results go back as items", async () => {
    callTools(model);
    const asked = { model, input: "The weather in Bern and Basel?", tools: [TOOL], store: false };
    const whole = await stage.client.responses.create(asked);
    expect(sent(model).text).toContain("The weather of a town");
    const streamed = await stage.client.responses.stream(asked).finalResponse();
    for (const { output } of [whole, streamed]) {
      expect(callsIn(output).map((call) => JSON.parse(call.arguments))).toEqual(CALLS);
      greet(model);
      const { output_text: text } = await stage.client.responses.create({
        ...asked,
        input: [
          { role: "user", content: asked.input },
          ...(output as OpenAI.Responses.ResponseInputItem[]),
          ...callsIn(output).map(({ call_id }, index) => ({
            ...{ type: "function_call_output" as const, call_id, output: `sun ${index}` },
          })),
        ],
      });
      expect(text).toBe("Good evening");
      for (const part of ["Bern", "Basel", "sun 0", "sun 1", "c2lnbmVk"])
        expect(sent(model).text).toContain(part);
    }
  });

  test("continues a response by its id", async () => {
    callTools(model);
    const first = await stage.client.responses.create({ model, input: "The weather?", tools: [TOOL] });
    greet(model);
    const second = await stage.client.responses.create({
      ...{ model, tools: [TOOL], previous_response_id: first.id },
      input: callsIn(first.output).map(({ call_id }, index) => ({
        ...{ type: "function_call_output" as const, call_id, output: `sun ${index}` },
      })),
    });
    expect(second).toMatchObject({ output_text: "Good evening", previous_response_id: first.id });
    const { text } = sent(model);
    for (const part of ["The weather?", "Bern", "sun 1", "c2lnbmVk"]) expect(text).toContain(part);
    // With a model of another provider, which cannot read what the first has signed.
    const other = model === "gemini/first" ? "claude/second" : "gemini/first";
    greet(other);
    const third = await stage.client.responses.create({
      ...{ model: other, input: "And then?", tools: [TOOL], previous_response_id: second.id },
    });
    expect(third.output_text).toBe("Good evening");
    for (const part of ["The weather?", "sun 1", "Good evening", "And then?"]) {
      expect(sent(other).text).toContain(part);
    }
    expect(sent(other).text).not.toContain("c2lnbmVk");
    const { data } = await stage.client.responses.inputItems.list(third.id, { order: "asc" });
    expect(data.filter(({ type }) => type === "message")).toHaveLength(3);
  });

  test("is read by the AI SDK, whole and streamed", async () => {
    const { responses } = createOpenAI({ apiKey: stage.clerk, baseURL: `${stage.gateway.url}/v1` });
    const prompt = [{ role: "user" as const, content: [{ type: "text" as const, text: "Good morning" }] }];
    greet(model);
    const whole = await responses(model).doGenerate({ prompt });
    expect(whole.content).toMatchObject([{ type: "text", text: "Good evening" }]);
    const { stream } = await responses(model).doStream({ prompt });
    const parts = await Array.fromAsync(stream);
    expect(parts.map((part) => (part.type === "text-delta" ? part.delta : "")).join("")).toBe("Good evening");
    expect(parts.at(-1)).toMatchObject({ type: "finish", finishReason: { unified: "stop" } });
    callTools(model);
    const inputSchema = { type: "object" as const, properties: {} };
    const tools = [{ type: "function" as const, name: "weather", inputSchema }];
    await responses(model).doGenerate({ prompt, tools });
    const called = await Array.fromAsync((await responses(model).doStream({ prompt, tools })).stream);
    const inputs = called.flatMap((part) => (part.type === "tool-call" ? [JSON.parse(part.input)] : []));
    expect(inputs).toEqual(CALLS);
    expect(called.some(({ type }) => type === "error")).toBe(false);
  });

  test("is read by the AI SDK, which refers to the earlier conversation by id", async () => {
    const { responses } = createOpenAI({ apiKey: stage.clerk, baseURL: `${stage.gateway.url}/v1` });
    const said = (role: "user", text: string) => ({ role, content: [{ type: "text" as const, text }] });
    greet(model);
    const first = await responses(model).doGenerate({ prompt: [said("user", "Good morning")] });
    const content = first.content.flatMap((part) =>
      part.type === "text" && part.providerMetadata
        ? [{ type: "text" as const, text: part.text, providerOptions: part.providerMetadata }]
        : [],
    );
    const prompt = [
      said("user", "Good morning"),
      { role: "assistant" as const, content },
      said("user", "And now?"),
    ];
    greet(model);
    await responses(model).doGenerate({ prompt });
    const { body } = await stage.gateway.call("GET", "/v1/ledger?action=model.call&order=desc&limit=2");
    const asked = JSON.parse(storedText(stage.gateway.dataDir, body.data[1], "input") ?? "");
    expect(asked.input[1]).toMatchObject({ type: "item_reference" });
    expect(sent(model).text).toContain("Good evening");
  });

  test("refuses requests that cannot be translated, before anything is sent", async () => {
    const before = [stage.google.requests.length, stage.anthropic.requests.length];
    const { status, text } = await stage.post("/v1/responses", { model, input: "x", truncation: "auto" });
    expect([status, JSON.parse(text).error.param]).toEqual([400, "truncation"]);
    expect([stage.google.requests.length, stage.anthropic.requests.length]).toEqual(before);
    expect(await stage.lastEntries()).toMatchObject([{ outcome: "denied", code: "unsupported_parameter" }]);
  });
});

test("a stream that is cut off ends with error and response.failed, with the text so far, and is not stored", async () => {
  stage.google.script("first", { parts: [{ text: "Good " }, { text: "evening" }], cutAfter: 1 });
  const { text } = await stage.post("/v1/responses", { model: "gemini/first", input: "x", stream: true });
  const events = text
    .trimEnd()
    .split("\n\n")
    .map((event) => JSON.parse(event.slice(event.indexOf("data: ") + 6)));
  const [error, failed] = events.slice(-2);
  expect(error).toMatchObject({ type: "error", error: { code: "provider_failed" } });
  expect(failed).toMatchObject({
    ...{ type: "response.failed", sequence_number: error.sequence_number + 1 },
    response: { status: "failed", model: "gemini/first", output: [{ content: [{ text: "Good " }] }] },
  });
  expect((await stage.lastEntries()).at(-1)).toMatchObject({ outcome: "failed" });
  const kept = stage.client.responses.retrieve(failed.response.id);
  expect(await kept.catch((thrown) => thrown)).toBeInstanceOf(OpenAI.NotFoundError);
});

test("a stop ends a translated stream with the error event, and its request to the provider", async () => {
  await stage.gateway.agent("runner", { tier_policy: { tiers: [1, 2] } });
  const token = await stage.gateway.token({ agent: "runner" });
  stage.google.script("first", { parts: [{ text: "Good " }, { text: "evening" }], hangAfter: 1 });
  const client = new OpenAI({ apiKey: token, baseURL: `${stage.gateway.url}/v1`, maxRetries: 0 });
  const stream = await client.responses.create({ model: "gemini/first", input: "x", stream: true });
  const read = async () => {
    for await (const { type } of stream) {
      if (type === "response.output_text.delta") await stage.gateway.call("POST", "/v1/agents/runner/stop");
    }
  };
  expect(await read().catch((thrown: unknown) => thrown)).toMatchObject({ code: "agent_stopped" });
  await until(() => stage.google.requests.at(-1)?.aborted === true);
});

test.each(["gemini/first", "claude/second"])(
  "%s answers in the background, with reasoning and tools",
  async (model) => {
    callTools(model);
    const asked = { model, input: "The weather?", tools: [TOOL], background: true };
    const { responses } = stage.client;
    // The script begins with a whole answer, but background responses are always streamed.
    await responses.create({ ...asked, background: false });
    const streamed = await responses.stream({ ...asked, tools: [TOOL] }).finalResponse();
    const whole = await responses.create(asked);
    let read = whole;
    await until(async () => {
      read = await responses.retrieve(whole.id);
      return read.status === "completed";
    });
    for (const response of [streamed, read]) {
      const calls = response.output.flatMap((item) =>
        item.type === "function_call" ? [JSON.parse(item.arguments)] : [],
      );
      expect([response.background, response.model, calls]).toEqual([true, model, CALLS]);
    }
    expect((await responses.retrieve(streamed.id)).status).toBe("completed");
  },
);

test("a new user's first response comes from the embedded model", async () => {
  const { output_text: text } = await stage.client.responses.create({
    model: "tier:1",
    input: "Good morning",
  });
  expect(text).toContain("builtin/extractive");
});

test("requests from Codex are understood: a tool in a namespace has one name for the model and two for Codex", async () => {
  stage.google.script("first", {
    parts: [{ functionCall: { name: "multi_agent_v1__close_agent", args: { id: "a1" } } }],
  });
  const close = { type: "function", name: "close_agent", strict: false, parameters: { type: "object" } };
  const request = {
    ...{ model: "gemini/first", stream: true, tool_choice: "auto", parallel_tool_calls: true, store: false },
    ...{ reasoning: { summary: "auto" }, include: ["reasoning.encrypted_content"] },
    ...{ prompt_cache_key: "01a2054c", client_metadata: { session_id: "01a2054c" } },
    input: [
      {
        ...{ type: "message", id: "msg_088b65fd-180e", role: "developer" },
        content: [{ type: "input_text", text: "You are a coding agent" }],
      },
      {
        type: "message",
        id: "msg_01a2054c",
        role: "user",
        content: [{ type: "input_text", text: "Close it" }],
      },
    ],
    tools: [
      {
        type: "function",
        name: "exec_command",
        strict: false,
        parameters: { type: "object", properties: {} },
      },
      { type: "namespace", name: "multi_agent_v1", description: "Sub-agents.", tools: [close] },
    ],
  };
  const { status, text } = await stage.post("/v1/responses", request);
  expect(status).toBe(200);
  const last = JSON.parse(text.slice(text.lastIndexOf("data: ") + 6));
  expect(last).toMatchObject({ type: "response.completed", response: { usage: { total_tokens: 10 } } });
  const [call] = last.response.output;
  expect(call).toMatchObject({ type: "function_call", namespace: "multi_agent_v1", name: "close_agent" });
  expect(sent("gemini").text).toContain("multi_agent_v1__close_agent");
  stage.google.script("first", { parts: [{ text: "Closed." }] });
  const output = { type: "function_call_output", call_id: call.call_id, output: "ok" };
  const next = await stage.post("/v1/responses", { ...request, input: [...request.input, call, output] });
  expect(next.status).toBe(200);
  const named = sent("gemini").body.contents.flatMap(({ parts }: { parts: object[] }) =>
    parts.flatMap((part) => Reflect.get(Reflect.get(part, "functionResponse") ?? {}, "name") ?? []),
  );
  expect(named).toEqual(["multi_agent_v1__close_agent"]);
  const search = { ...request, tools: [...request.tools, { type: "web_search", external_web_access: true }] };
  const refused = await stage.post("/v1/responses", search);
  expect([refused.status, JSON.parse(refused.text).error.param]).toEqual([400, "tools.2.type"]);
});

test("a server that only speaks Chat Completions answers, whole and streamed, and receives tools and their results", async () => {
  const compatible = await openDialectStage();
  try {
    const { upstream, gateway, clerk } = compatible;
    const { responses } = new OpenAI({ apiKey: clerk, baseURL: `${gateway.url}/v1`, maxRetries: 0 });
    const usage = { prompt_tokens: 7, completion_tokens: 3 };
    upstream.script("first", {
      toolCalls: CALLS.map((args) => ({ name: "weather", arguments: args })),
      usage,
    });
    const asked = { model: "up/first", input: "The weather?", tools: [TOOL], user: "ada" };
    const whole = await responses.create(asked);
    const streamed = await responses.stream(asked).finalResponse();
    for (const response of [whole, streamed]) {
      expect(callsIn(response.output).map((call) => JSON.parse(call.arguments))).toEqual(CALLS);
      expect(response.usage).toMatchObject({ input_tokens: 7, output_tokens: 3 });
      upstream.script("first", { chunks: ["Good ", "evening"], usage });
      const input = callsIn(response.output).map(({ call_id }) => ({
        ...{ type: "function_call_output" as const, call_id, output: "sun" },
      }));
      const next = await responses.create({ ...asked, input, previous_response_id: response.id });
      expect(next.output_text).toBe("Good evening");
      expect(upstream.requests.at(-1)?.body).toMatchObject({
        user: "ada",
        messages: [
          { role: "user", content: "The weather?" },
          { role: "assistant", tool_calls: [{ function: { name: "weather" } }, {}] },
          { role: "tool", content: "sun" },
          { role: "tool", content: "sun" },
        ],
      });
    }
    // Without a report, clients get zeros, and the ledger an estimate.
    upstream.script("first", { chunks: ["Good evening"], usage: null });
    const { usage: none } = await responses.stream({ model: "up/first", input: "x" }).finalResponse();
    expect(none).toMatchObject({ input_tokens: 0, output_tokens: 0 });
    const outcome = (await compatible.entries()).at(-1);
    expect(outcome).toMatchObject({ outcome: "succeeded", detail: { usage: "estimated" } });
    expect(outcome?.detail?.output_tokens).toBeGreaterThan(0);
  } finally {
    await compatible.stop();
  }
});
