/** Messages to models whose providers do not support that API, with Anthropic's own client. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createAnthropic } from "@ai-sdk/anthropic";
import type { LanguageModelV4CallOptions, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import type Anthropic from "@anthropic-ai/sdk";
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

const MODELS = ["up/first", "gemini/first", "work/gpt-5"];
const CALLS = [{ town: "Bern" }, { town: "Basel" }];

/** Each upstream's answer "Good evening" with 7 and 3 tokens. */
function greet(model: string): void {
  const usage = { prompt_tokens: 7, completion_tokens: 3 };
  if (model.startsWith("up")) stage.chat.script("first", { chunks: ["Good ", "evening"], usage });
  else if (model.startsWith("gemini")) {
    stage.google.script("first", { parts: [{ text: "Good " }, { text: "evening" }] });
  } else {
    const content = ["Good ", "evening"].map((text) => ({ type: "output_text", text, annotations: [] }));
    stage.responses.script([{ type: "message", id: "msg_up", role: "assistant", content }]);
  }
}

/** Each upstream thinks, if it can, and calls both tools. */
function callTools(model: string): void {
  if (model.startsWith("up")) {
    stage.chat.script("first", {
      toolCalls: CALLS.map((args) => ({ name: "weather", arguments: args })),
      usage: { prompt_tokens: 7, completion_tokens: 3 },
    });
  } else if (model.startsWith("gemini")) {
    const calls = CALLS.map((args, index) => ({
      functionCall: { name: "weather", args },
      ...(index === 0 ? { thoughtSignature: "c2lnbmVk" } : {}),
    }));
    stage.google.script("first", { parts: [{ text: "Which weather?", thought: true }, ...calls] });
  } else {
    const summary = [{ type: "summary_text", text: "Which weather?" }];
    stage.responses.script([
      { type: "reasoning", id: "rs_1", summary, encrypted_content: "c2VhbGVk" },
      ...CALLS.map((args, index) => ({
        ...{ type: "function_call", id: `fc_${index}`, call_id: `call_${index}`, name: "weather" },
        ...{ arguments: JSON.stringify(args), status: "completed" },
      })),
    ]);
  }
}

/** What the upstream was sent last, as JSON. */
function sent(model: string): string {
  if (model.startsWith("up")) return JSON.stringify(stage.chat.requests.at(-1)?.body);
  if (model.startsWith("gemini")) return JSON.stringify(stage.google.requests.at(-1)?.body);
  return JSON.stringify(stage.responses.requests.at(-1));
}

describe.each(MODELS)("%s", (model) => {
  test("answers, whole and streamed, and intent and outcome are in the ledger", async () => {
    greet(model);
    const asked = { model, max_tokens: 100, messages: USER };
    const { data, response } = await stage.client.messages.create(asked).withResponse();
    const text = data.content.map((block) => (block.type === "text" ? block.text : "?")).join("");
    expect(text).toBe("Good evening");
    expect(data).toMatchObject({
      ...{ id: expect.stringMatching(/^msg_/), type: "message", role: "assistant", model },
      ...{ stop_reason: "end_turn", stop_sequence: null },
      usage: { input_tokens: 7, output_tokens: 3 },
    });
    expect(response.headers.get("gatehouse-model")).toBe(model);
    const [intent, outcome] = await stage.lastEntries();
    expect(intent).toMatchObject({ phase: "intent", agent: "clerk", model });
    expect(String(intent?.seq)).toBe(response.headers.get("gatehouse-ledger") ?? "");
    const detail = { dialect: "messages", input_tokens: 7, output_tokens: 3, usage: "reported" };
    expect(outcome).toMatchObject({ ref: intent?.seq ?? null, outcome: "succeeded", detail });

    const stream = stage.client.messages.stream(asked);
    const pieces: string[] = [];
    stream.on("text", (piece) => pieces.push(piece));
    const final = await stream.finalMessage();
    expect(pieces).toEqual(["Good ", "evening"]);
    expect(final).toMatchObject({ stop_reason: "end_turn", usage: { input_tokens: 7, output_tokens: 3 } });
    expect((await stage.lastEntries()).at(-1)).toMatchObject({ outcome: "succeeded", detail });
  });

  test("calls the client's tools in parallel, whole and streamed, and reads their results in a second turn", async () => {
    const asked = {
      ...{ model, max_tokens: 100, messages: USER, tools: [WEATHER] },
      thinking: { type: "adaptive" as const },
    };
    callTools(model);
    const whole = await stage.client.messages.create(asked);
    expect(sent(model)).toContain("The weather of a town");
    const streamed = await stage.client.messages.stream(asked).finalMessage();
    for (const message of [whole, streamed]) {
      expect(message.stop_reason).toBe("tool_use");
      const calls = message.content.filter((block) => block.type === "tool_use");
      expect(calls.map(({ name, input }) => [name, input])).toEqual(CALLS.map((args) => ["weather", args]));
      greet(model);
      const results: Anthropic.ToolResultBlockParam[] = calls.map(({ id }, index) => ({
        ...{ type: "tool_result", tool_use_id: id, is_error: index === 1 },
        content: [{ type: "text", text: index === 0 ? "18 °C" : "No such town" }],
      }));
      const answered = await stage.client.messages.create({
        ...asked,
        // As received, with all that the client has added.
        messages: [
          ...USER,
          { role: "assistant", content: message.content },
          { role: "user", content: results },
        ],
      });
      expect(answered.content.at(-1)).toMatchObject({ type: "text" });
      const text = sent(model);
      for (const part of ["Bern", "Basel", "18 °C", "No such town"]) expect(text).toContain(part);
      for (const { id } of calls) expect(text).toContain(id);
    }
  });
});

test("thoughts come with a signature, and go back with it in the provider's own format", async () => {
  const asked = {
    ...{ max_tokens: 100, messages: USER, tools: [WEATHER] },
    thinking: { type: "adaptive" as const },
  };
  const goBack = async (model: string, content: Anthropic.ContentBlock[]) => {
    greet(model);
    const results = content.flatMap((block): Anthropic.ToolResultBlockParam[] =>
      block.type === "tool_use" ? [{ type: "tool_result", tool_use_id: block.id, content: "sun" }] : [],
    );
    const messages = [
      ...USER,
      { role: "assistant" as const, content },
      { role: "user" as const, content: results },
    ];
    await stage.client.messages.create({ ...asked, model, messages });
  };

  callTools("gemini/first");
  const google = await stage.client.messages.stream({ ...asked, model: "gemini/first" }).finalMessage();
  expect(google.content[0]).toMatchObject({ type: "thinking", thinking: "Which weather?" });
  expect(stage.google.requests.at(-1)?.body.generationConfig.thinkingConfig).toEqual({
    includeThoughts: true,
  });
  await goBack("gemini/first", google.content);
  const parts = stage.google.requests.at(-1)?.body.contents[1].parts;
  expect(parts[0]).toEqual({ text: "Which weather?", thought: true });
  expect(parts[1]).toMatchObject({ functionCall: { args: { town: "Bern" } }, thoughtSignature: "c2lnbmVk" });

  callTools("work/gpt-5");
  const openai = await stage.client.messages.stream({ ...asked, model: "work/gpt-5" }).finalMessage();
  expect(openai.content[0]).toMatchObject({ type: "thinking", thinking: "Which weather?" });
  expect(stage.responses.requests.at(-1)).toMatchObject({
    ...{ store: false, include: ["reasoning.encrypted_content"], max_output_tokens: 100 },
  });
  await goBack("work/gpt-5", openai.content);
  expect(stage.responses.requests.at(-1).input[1]).toEqual({
    ...{ type: "reasoning", id: "rs_1", encrypted_content: "c2VhbGVk" },
    summary: [{ type: "summary_text", text: "Which weather?" }],
  });

  // One kind of provider cannot use what another kind has signed.
  await goBack("gemini/first", openai.content);
  expect(JSON.stringify(stage.google.requests.at(-1)?.body)).not.toContain("Which weather?");
});

test("reasoning from a server that signs nothing is returned to it too", async () => {
  const events = [
    { role: "assistant", reasoning_content: "Which " },
    { reasoning_content: "weather?" },
    { content: "Let me look." },
    {
      tool_calls: [
        { index: 0, id: "a", type: "function", function: { name: "weather", arguments: '{"town"' } },
      ],
    },
    { tool_calls: [{ index: 1, id: "b", type: "function", function: { name: "weather", arguments: "{}" } }] },
    { tool_calls: [{ index: 0, function: { arguments: ':"Bern"}' } }] },
  ];
  stage.chat.script("first", {
    rawBytes: [
      ...events.map((delta) => chatEvent(delta)),
      chatEvent({}, "tool_calls"),
      Buffer.from("data: [DONE]\n\n"),
    ],
  });
  const asked = { model: "up/first", max_tokens: 100, messages: USER, tools: [WEATHER] };
  const { content } = await stage.client.messages.stream(asked).finalMessage();
  expect(content).toMatchObject([
    { type: "thinking", thinking: "Which weather?" },
    { type: "text", text: "Let me look." },
    { type: "tool_use", id: "a", input: { town: "Bern" } },
    { type: "tool_use", id: "b", input: {} },
  ]);
  greet("up/first");
  const results = ["a", "b"].map((id) => ({ type: "tool_result" as const, tool_use_id: id, content: "sun" }));
  await stage.client.messages.create({
    ...asked,
    messages: [...USER, { role: "assistant", content }, { role: "user", content: results }],
  });
  const [, assistant, ...tools] = stage.chat.requests.at(-1)?.body.messages ?? [];
  expect(assistant).toMatchObject({ reasoning_content: "Which weather?", content: "Let me look." });
  expect(tools).toMatchObject([
    { role: "tool", tool_call_id: "a", content: "sun" },
    { role: "tool", tool_call_id: "b", content: "sun" },
  ]);
});

test("images, documents and structured output reach each provider in its own format", async () => {
  const image = { type: "base64" as const, media_type: "image/png" as const, data: "iVBORw0KGgo=" };
  const schema = { type: "object", properties: { town: { type: "string" } }, additionalProperties: false };
  const asked = {
    max_tokens: 100,
    messages: [
      {
        role: "user" as const,
        content: [
          { type: "image" as const, source: image },
          {
            type: "document" as const,
            source: { type: "text" as const, media_type: "text/plain" as const, data: "A plan" },
          },
          { type: "text" as const, text: "Which town?" },
        ],
      },
    ],
    output_config: { format: { type: "json_schema" as const, schema } },
  };
  for (const model of MODELS) {
    greet(model);
    await stage.client.messages.create({ ...asked, model });
    for (const part of [image.data, "A plan", "Which town?", '"town"']) expect(sent(model)).toContain(part);
  }
  expect(stage.chat.requests.at(-1)?.body).toMatchObject({
    response_format: { type: "json_schema", json_schema: { schema, strict: true } },
  });
});

test("one tool at a time is requested from providers that support it, and no tool is made strict", async () => {
  const asked = { max_tokens: 100, messages: USER, tools: [WEATHER] };
  const tool_choice = { type: "auto" as const, disable_parallel_tool_use: true };
  for (const model of ["up/first", "work/gpt-5"]) {
    greet(model);
    await stage.client.messages.create({ ...asked, model, tool_choice });
  }
  expect(stage.chat.requests.at(-1)?.body).toMatchObject({ parallel_tool_calls: false, tool_choice: "auto" });
  expect(stage.responses.requests.at(-1)).toMatchObject({
    ...{ parallel_tool_calls: false, tool_choice: "auto", tools: [{ name: "weather", strict: false }] },
  });
});

test("a tool's image is sent in a separate message to a server whose results are texts", async () => {
  greet("up/first");
  const source = { type: "base64" as const, media_type: "image/png" as const, data: "iVBORw0KGgo=" };
  const call = { type: "tool_use" as const, id: "a", name: "weather", input: {} };
  await stage.client.messages.create({
    ...{ model: "up/first", max_tokens: 100, tools: [WEATHER] },
    messages: [
      ...USER,
      { role: "assistant", content: [call] },
      {
        role: "user",
        content: [{ type: "tool_result", tool_use_id: "a", content: [{ type: "image", source }] }],
      },
    ],
  });
  const [, , tool, user] = stage.chat.requests.at(-1)?.body.messages ?? [];
  expect(tool).toMatchObject({ role: "tool", content: "(A file follows in the next message.)" });
  const url = `data:image/png;base64,${source.data}`;
  expect(user).toMatchObject({ role: "user", content: [{ type: "text" }, { image_url: { url } }] });
});

test("a request from Claude Code is answered by each kind of provider", async () => {
  const asked = {
    model: "claude-sonnet-5-5",
    system: [
      { type: "text", text: "x-anthropic-billing-header: cc_version=2.1.330;" },
      { type: "text", text: "You are an agent.", cache_control: { type: "ephemeral" } },
    ],
    messages: [
      ...USER,
      { role: "system", content: "# Environment\nLinux", output_config: { effort: "medium" } },
    ],
    tools: [WEATHER, { ...WEATHER, name: "Deferred", defer_loading: true }],
    metadata: { user_id: "x".repeat(150) },
    ...{ max_tokens: 32_000, thinking: { type: "adaptive", display: "omitted" }, stream: true },
    context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
    output_config: { effort: "high" },
  };
  for (const model of [...MODELS, "tier:1", "claude-sonnet-5-5"]) {
    greet(model === "claude-sonnet-5-5" ? "gemini/first" : model);
    const { status, text } = await stage.post({ ...asked, model }, "/v1/messages?beta=true");
    expect([status, text.includes("event: message_stop")]).toEqual([200, true]);
  }
  expect(stage.chat.requests.at(-1)?.body.messages.map(({ role }) => role)).toEqual([
    "system",
    "user",
    "system",
  ]);
  expect(stage.chat.requests.at(-1)?.body).toMatchObject({ reasoning_effort: "medium", max_tokens: 32_000 });
  expect(stage.responses.requests.at(-1)).toMatchObject({ reasoning: { effort: "medium" } });
  const [said] = stage.google.requests.at(-1)?.body.contents ?? [];
  expect(said.parts).toEqual([
    { text: "Good morning" },
    { text: "<system>\n# Environment\nLinux\n</system>" },
  ]);
  expect(sent("gemini/first")).not.toContain("Deferred");
});

test("the embedded model answers, whole and streamed, and with a client's tools", async () => {
  const asked = { model: "tier:1", max_tokens: 100, messages: USER };
  const whole = await stage.client.messages.create(asked);
  expect(whole.content).toMatchObject([
    { type: "text", text: expect.stringContaining("builtin/extractive") },
  ]);
  expect(await stage.client.messages.stream(asked).finalText()).toContain("builtin/extractive");
  expect((await stage.lastEntries()).at(-1)).toMatchObject({
    model: "builtin/extractive",
    outcome: "succeeded",
  });

  const search = {
    ...{ name: "search", description: "Searches the handbook" },
    input_schema: {
      ...{ type: "object" as const, required: ["query"] },
      properties: { query: { type: "string" } },
    },
  };
  const question = [{ role: "user" as const, content: "Who may sign contracts above 5000 francs?" }];
  const called = await stage.client.messages
    .stream({ ...asked, messages: question, tools: [search] })
    .finalMessage();
  const [call] = called.content.filter((block) => block.type === "tool_use");
  expect([called.stop_reason, call?.name]).toEqual(["tool_use", "search"]);
  const found = "Contracts above 5000 francs may be signed by the director only.";
  const answer = await stage.client.messages.create({
    ...{ ...asked, tools: [search] },
    messages: [
      ...question,
      { role: "assistant", content: called.content },
      { role: "user", content: [{ type: "tool_result", tool_use_id: call?.id ?? "", content: found }] },
    ],
  });
  expect(answer.content).toMatchObject([{ type: "text", text: expect.stringContaining("the director") }]);
});

test("tokens of a request for another kind of provider are estimated, and nothing is sent", async () => {
  const before = stage.google.requests.length;
  const { status, headers, text } = await stage.post(
    { model: "gemini/first", messages: USER },
    "/v1/messages/count_tokens",
  );
  expect([status, headers.get("gatehouse-usage")]).toEqual([200, "estimated"]);
  expect(JSON.parse(text).input_tokens).toBeGreaterThan(0);
  expect(stage.google.requests).toHaveLength(before);
});

test("another client of Anthropic's API accepts each event, and its requests are translated", async () => {
  const key = await stage.gateway.token({ agent: "clerk" });
  const provider = createAnthropic({ baseURL: `${stage.gateway.url}/v1`, apiKey: key });
  const options: LanguageModelV4CallOptions = {
    prompt: [{ role: "user", content: [{ type: "text", text: "Good morning" }] }],
    tools: [{ type: "function", name: "weather", inputSchema: WEATHER.input_schema as never }],
    ...{ maxOutputTokens: 2_000, reasoning: "high" },
  };
  for (const model of MODELS) {
    callTools(model);
    const { content, finishReason, usage } = await provider(model).doGenerate(options);
    const calls = content.flatMap((part) => (part.type === "tool-call" ? [JSON.parse(part.input)] : []));
    expect([calls, finishReason.unified]).toEqual([CALLS, "tool-calls"]);
    expect([usage.inputTokens.total, usage.outputTokens.total]).toEqual([7, 3]);

    const parts: LanguageModelV4StreamPart[] = [];
    for await (const part of (await provider(model).doStream(options)).stream) parts.push(part);
    expect(parts.filter(({ type }) => type === "error")).toEqual([]);
    const streamed = parts.flatMap((part) => (part.type === "tool-call" ? [JSON.parse(part.input)] : []));
    expect(streamed).toEqual(CALLS);
    expect(parts.at(-1)).toMatchObject({ type: "finish", finishReason: { unified: "tool-calls" } });
  }
});
