/** Chat completions of models whose providers speak another dialect, with OpenAI's own client. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { block, closing, message, opening, textEvents } from "../messages-support.ts";
import { openTranslationStage, type TranslationStage, USER } from "./translation-support.ts";

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
  const content = [{ type: "text", text: "Good evening" }];
  stage.anthropic.script(
    "second",
    { message: message(content, { input_tokens: 7, output_tokens: 3 }) },
    { events: textEvents(["Good ", "evening"], 7, 3) },
  );
}

describe.each(["gemini/first", "claude/second"])("%s", (model) => {
  test("answers, whole and streamed, and intent and outcome are in the ledger", async () => {
    greet(model);
    const { data, response } = await stage.client.chat.completions
      .create({ model, messages: USER })
      .withResponse();
    expect(data).toMatchObject({
      ...{ model, object: "chat.completion", id: expect.stringMatching(/^chatcmpl-/) },
      choices: [{ message: { role: "assistant", content: "Good evening" }, finish_reason: "stop" }],
      usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 },
    });
    expect(response.headers.get("gatehouse-model")).toBe(model);
    const [intent, outcome] = await stage.lastEntries();
    expect(intent).toMatchObject({ phase: "intent", agent: "clerk", model });
    expect(String(intent?.seq)).toBe(response.headers.get("gatehouse-ledger") ?? "");
    const detail = { dialect: "chat_completions", input_tokens: 7, output_tokens: 3, usage: "reported" };
    expect(outcome).toMatchObject({ ref: intent?.seq ?? null, outcome: "succeeded", detail });

    const asked = { model, messages: USER, stream: true } as const;
    const stream = await stage.client.chat.completions.create(asked);
    const texts: string[] = [];
    for await (const chunk of stream) {
      expect(chunk.choices).toHaveLength(1);
      texts.push(chunk.choices[0]?.delta.content ?? "");
    }
    expect(texts).toEqual(["Good ", "evening", ""]);
    expect((await stage.lastEntries()).at(-1)).toMatchObject({ outcome: "succeeded", detail });
  });
});

test("the usage chunk reaches a client that requests it", async () => {
  stage.google.script("first", { parts: [{ text: "x" }] });
  const stream = await stage.client.chat.completions.create({
    ...{ model: "gemini/first", messages: USER, stream: true, stream_options: { include_usage: true } },
  });
  const usages: unknown[] = [];
  for await (const chunk of stream) if (chunk.usage) usages.push(chunk.usage);
  expect(usages).toEqual([expect.objectContaining({ prompt_tokens: 7, completion_tokens: 3 })]);
});

test("usage that the provider does not report is not invented for the client, but estimated for the ledger", async () => {
  stage.google.script("first", { parts: [{ text: "Good evening" }], usage: null });
  const answer = await stage.client.chat.completions.create({ model: "gemini/first", messages: USER });
  expect(answer.usage).toBeUndefined();
  expect((await stage.lastEntries()).at(-1)?.detail).toMatchObject({
    ...{ usage: "estimated", output_tokens: expect.any(Number) },
  });
});

test("a new user's first chat completion is answered by the embedded model", async () => {
  const answer = await stage.client.chat.completions.create({ model: "tier:1", messages: USER });
  expect(answer.choices[0]?.message.content).toContain("builtin/extractive");
  expect((await stage.lastEntries()).at(-1)).toMatchObject({
    model: "builtin/extractive",
    outcome: "succeeded",
  });
});

const WEATHER = {
  type: "function" as const,
  function: {
    name: "weather",
    description: "The weather of a town",
    parameters: { type: "object", properties: { town: { type: "string" } }, required: ["town"] },
  },
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
  const calls = CALLS.map((input, index) => ({
    type: "tool_use",
    id: `toolu_${index}`,
    name: "weather",
    input,
  }));
  const events = CALLS.flatMap((input, index) =>
    block(index, { type: "tool_use", id: `toolu_${index}`, name: "weather", input: {} }, [
      { type: "input_json_delta", partial_json: JSON.stringify(input).slice(0, 5) },
      { type: "input_json_delta", partial_json: JSON.stringify(input).slice(5) },
    ]),
  );
  const usage = { input_tokens: 5, output_tokens: 6 };
  stage.anthropic.script(
    "second",
    { message: message(calls, usage, { stop_reason: "tool_use" }) },
    { events: [opening(usage), ...events, ...closing({ output_tokens: 6 }, "tool_use")] },
  );
}

/** What the provider was sent last, as JSON. */
function sent(model: string) {
  return model.startsWith("gemini")
    ? JSON.stringify(stage.google.requests.at(-1)?.body)
    : (stage.anthropic.requests.at(-1)?.bytes.toString() ?? "");
}

describe.each(["gemini/first", "claude/second"])("tools of a client with %s", (model) => {
  test("are called in parallel, whole and streamed, and their results go back", async () => {
    callTools(model);
    const asked = { model, messages: USER, tools: [WEATHER] };
    const whole = await stage.client.chat.completions.create(asked);
    const [choice] = whole.choices;
    const calls = choice?.message.tool_calls ?? [];
    expect(choice?.finish_reason).toBe("tool_calls");
    expect(calls.map((call) => call.type === "function" && JSON.parse(call.function.arguments))).toEqual(
      CALLS,
    );
    expect(sent(model)).toContain("The weather of a town");

    const streamed = await stage.client.chat.completions.stream(asked).finalChatCompletion();
    const [again] = streamed.choices;
    expect(again?.finish_reason).toBe("tool_calls");
    expect(
      again?.message.tool_calls?.map(
        (call) => call.type === "function" && JSON.parse(call.function.arguments),
      ),
    ).toEqual(CALLS);

    greet(model);
    const answered = await stage.client.chat.completions.create({
      ...asked,
      messages: [
        ...USER,
        // As received, with all that the client has added.
        ...(choice ? [choice.message] : []),
        ...calls.map(({ id }, index) => ({
          role: "tool" as const,
          tool_call_id: id,
          content: `sun ${index}`,
        })),
      ],
    });
    expect(answered.choices[0]?.message.content).toBe("Good evening");
    const text = sent(model);
    for (const { town } of CALLS) expect(text).toContain(town);
    expect(text).toContain("sun 0");
    expect(text).toContain("sun 1");
    if (model.startsWith("gemini")) expect(text).toContain("c2lnbmVk");
  });
});

test.each([false, true])(
  "signed thoughts go back to the provider with the call (stream: %p)",
  async (stream) => {
    const call = { type: "tool_use", id: "toolu_0", name: "weather", input: { town: "Bern" } };
    const thought = { type: "thinking", thinking: "I need the weather.", signature: "c2lnbmVk" };
    const usage = { input_tokens: 5, output_tokens: 6 };
    const events = [
      opening(usage),
      ...block(0, { type: "thinking", thinking: "", signature: "" }, [
        { type: "thinking_delta", thinking: thought.thinking },
        { type: "signature_delta", signature: thought.signature },
      ]),
      ...block(1, { ...call, input: {} }, [{ type: "input_json_delta", partial_json: '{"town":"Bern"}' }]),
      ...closing({ output_tokens: 6 }, "tool_use"),
    ];
    const whole = message([thought, call], usage, { stop_reason: "tool_use" });
    stage.anthropic.script("second", stream ? { events } : { message: whole });
    const asked = {
      ...{ model: "claude/second", messages: USER, tools: [WEATHER] },
      reasoning_effort: "low" as const,
    };
    const { choices } = await (stream
      ? stage.client.chat.completions.stream(asked).finalChatCompletion()
      : stage.client.chat.completions.create(asked));
    const answer = choices[0]?.message;
    expect(Reflect.get(answer ?? {}, "reasoning_content")).toBe(thought.thinking);
    greet("claude/second");
    await stage.client.chat.completions.create({
      ...asked,
      messages: [
        ...USER,
        ...(answer ? [answer] : []),
        { role: "tool", tool_call_id: "toolu_0", content: "sun" },
      ],
    });
    const { messages } = JSON.parse(sent("claude/second"));
    expect(messages[1]).toEqual({ role: "assistant", content: [thought, call] });
  },
);
