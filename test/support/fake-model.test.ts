/** The fake is correct if the AI SDK's real client understands it. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { APICallError, type LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { type FakeModel, startFakeModel } from "./fake-model.ts";
import { until } from "./until.ts";

let fake: FakeModel;

beforeEach(() => {
  fake = startFakeModel();
});

afterEach(() => fake.close());

const encode = (text: string) => new TextEncoder().encode(text);

function model(id: string, options: { includeUsage?: boolean } = {}) {
  return createOpenAICompatible({
    name: "fake",
    baseURL: fake.url,
    apiKey: "secret",
    includeUsage: options.includeUsage ?? true,
  }).chatModel(id);
}

const prompt = (text: string) => [{ role: "user" as const, content: [{ type: "text" as const, text }] }];

async function stream(id: string, text = "hello there", signal?: AbortSignal) {
  const options = { prompt: prompt(text), ...(signal && { abortSignal: signal }) };
  const { stream } = await model(id).doStream(options);
  return stream.getReader();
}

/** Every part until the end, and the stream's error if it broke. */
async function collect(id: string, text?: string) {
  const reader = await stream(id, text);
  const parts: LanguageModelV4StreamPart[] = [];
  let error: unknown;
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) parts.push(next.value);
  } catch (cause) {
    error = cause;
  }
  const deltas = parts.flatMap((part) => (part.type === "text-delta" ? [part.delta] : []));
  return {
    parts,
    error,
    deltas,
    text: deltas.join(""),
    finish: parts.find((part) => part.type === "finish"),
    calls: parts.flatMap((part) => (part.type === "tool-call" ? [part] : [])),
  };
}

describe("text", () => {
  test("echoes by default, in several chunks, with usage", async () => {
    const { text, deltas, finish } = await collect("any", "hello there");
    expect(text).toBe("You said: hello there");
    expect(deltas).toHaveLength(4);
    expect(finish?.finishReason.unified).toBe("stop");
    expect(finish?.usage.inputTokens.total).toBe(2);
    expect(finish?.usage.outputTokens.total).toBe(4);
  });

  test("streams the scripted chunks with the scripted usage", async () => {
    fake.script("m", {
      chunks: ["a", "b", "ü"],
      usage: { prompt_tokens: 7, completion_tokens: 3 },
      delayMs: 2,
    });
    const { deltas, finish } = await collect("m");
    expect(deltas).toEqual(["a", "b", "ü"]);
    expect(finish?.usage.inputTokens.total).toBe(7);
  });

  test("answers a call that requests no stream", async () => {
    fake.script("m", { chunks: ["a", "b"], toolCalls: [{ name: "t", arguments: { x: 1 } }] });
    const { content, finishReason, usage } = await model("m").doGenerate({ prompt: prompt("hi") });
    expect(content).toMatchObject([
      { type: "text", text: "ab" },
      { type: "tool-call", toolName: "t", input: '{"x":1}' },
    ]);
    expect(finishReason.unified).toBe("tool-calls");
    expect(usage.outputTokens.total).toBe(3);
  });

  test("verbatim bytes may split a character", async () => {
    const bytes = encode(
      'data: {"id":"x","choices":[{"index":0,"delta":{"content":"ü"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
    );
    const middle = bytes.indexOf(0xc3) + 1;
    fake.script("m", { rawBytes: [bytes.slice(0, middle), bytes.slice(middle)] });
    expect((await collect("m")).text).toBe("ü");
  });

  test("verbatim bytes arrive in separate reads", async () => {
    fake.script("m", { rawBytes: [encode("one"), encode("two")], delayMs: 20 });
    const body = JSON.stringify({ model: "m", messages: [], stream: true });
    const reader = (await fetch(`${fake.url}/chat/completions`, { method: "POST", body })).body?.getReader();
    expect((await reader?.read())?.value).toEqual(encode("one"));
    expect((await reader?.read())?.value).toEqual(encode("two"));
  });
});

describe("tool calls", () => {
  test("arrive in parts and finish with tool-calls", async () => {
    const toolCalls = [
      { name: "search", arguments: { query: "cats", limit: 3 } },
      { name: "now", arguments: {} },
    ];
    fake.script("m", { chunks: ["Looking."], toolCalls });
    const { text, calls, finish } = await collect("m");
    expect(text).toBe("Looking.");
    expect(calls.map((call) => [call.toolName, call.input])).toEqual([
      ["search", '{"query":"cats","limit":3}'],
      ["now", "{}"],
    ]);
    expect(new Set(calls.map((call) => call.toolCallId)).size).toBe(2);
    expect(finish?.finishReason.unified).toBe("tool-calls");
  });

  test("a script may depend on the request and on the call's number", async () => {
    fake.script("m", (request, index) =>
      index === 0
        ? { toolCalls: [{ name: "t", arguments: "{not json" }] }
        : { chunks: [`${index} ${request.body.messages.length}`] },
    );
    expect((await collect("m")).calls[0]?.input).toBe("{not json");
    expect((await collect("m")).text).toBe("1 1");
  });
});

describe("usage", () => {
  test("is never sent if the script says null", async () => {
    fake.script("m", { chunks: ["a"], usage: null });
    const { finish } = await collect("m");
    expect(finish?.usage.inputTokens.total).toBeUndefined();
  });

  test("is sent in a stream only on request", async () => {
    const { stream } = await model("m", { includeUsage: false }).doStream({ prompt: prompt("hi") });
    const parts = await Array.fromAsync(stream);
    expect(parts.find((part) => part.type === "finish")?.usage.inputTokens.total).toBeUndefined();
    expect(fake.requests[0]?.body.stream_options).toBeUndefined();
  });
});

describe("failures", () => {
  test("429 with Retry-After", async () => {
    fake.script("m", { status: 429, headers: { "retry-after": "7" } });
    const error = await collect("m").catch((cause: unknown) => cause);
    if (!APICallError.isInstance(error)) throw error;
    expect(error.statusCode).toBe(429);
    expect(error.isRetryable).toBe(true);
    expect(error.responseHeaders?.["retry-after"]).toBe("7");
    expect(error.message).toBe("The script answers 429.");
  });

  test("a cut connection is an error after the chunks before it", async () => {
    fake.script("m", { chunks: ["a", "b", "c"], cutAfter: 2 });
    const { error, deltas, finish } = await collect("m");
    expect(deltas).toEqual(["a", "b"]);
    if (!APICallError.isInstance(error)) throw error;
    expect(String(error.cause)).toContain("ECONNRESET");
    expect(finish).toBeUndefined();
  });

  test("a cut before any answer, and in an answer that is not a stream", async () => {
    fake.script("m", { chunks: ["a"], cutAfter: 0 });
    const { error, deltas } = await collect("m");
    expect(error).toBeDefined();
    expect(deltas).toEqual([]);
    await expect(model("m").doGenerate({ prompt: prompt("hi") })).rejects.toThrow();
  });

  test("an end without a finish reason is clean on the wire, and an error to the client", async () => {
    fake.script("m", { chunks: ["a"], noFinish: true });
    const { error, text, finish } = await collect("m");
    expect(error).toBeUndefined();
    expect(text).toBe("a");
    expect(finish?.finishReason.unified).toBe("error");
  });

  test("a body that is not a chat request is refused", async () => {
    const send = (body: string) => fetch(`${fake.url}/chat/completions`, { method: "POST", body });
    expect((await send("{")).status).toBe(400);
    expect((await send('{"model":"m"}')).status).toBe(400);
    expect(fake.requests).toHaveLength(0);
  });

  test("any key except the expected one is refused", async () => {
    await fake.close();
    fake = startFakeModel({ apiKey: "other" });
    const error = await collect("m").catch((cause: unknown) => cause);
    expect(APICallError.isInstance(error) && error.statusCode).toBe(401);
  });
});

describe("time", () => {
  test("a gate holds back the end, not the text", async () => {
    const gate = Promise.withResolvers<void>();
    fake.script("m", { chunks: ["a"], gate: gate.promise });
    const reader = await stream("m");
    const seen: string[] = [];
    let next = await reader.read();
    while (!next.done && next.value.type !== "text-delta") next = await reader.read();
    const rest = (async () => {
      for (let part = await reader.read(); !part.done; part = await reader.read()) seen.push(part.value.type);
    })();
    await Bun.sleep(20);
    expect(seen).toEqual([]);
    gate.resolve();
    await rest;
    expect(seen).toContain("finish");
    expect(fake.requests[0]?.aborted).toBe(false);
  });

  test.each([
    ["hangs before answering", { hang: true }],
    ["hangs after a chunk", { chunks: ["a", "b"], hangAfter: 1 }],
    ["is slow to start", { chunks: ["a"], firstDelayMs: 60_000 }],
    ["is slow between chunks", { chunks: ["a", "b"], delayMs: 60_000 }],
    ["waits at a gate", { chunks: ["a"], gate: new Promise(() => {}) }],
  ] as const)("a caller that leaves is noticed while it %s", async (_, behaviour) => {
    fake.script("m", behaviour);
    const abort = new AbortController();
    const reading = stream("m", "hi", abort.signal).then(async (reader) => {
      while (!(await reader.read()).done);
    });
    reading.catch(() => {});
    await until(() => fake.requests.length === 1);
    await Bun.sleep(20);
    expect(fake.requests[0]?.aborted).toBe(false);
    abort.abort();
    await until(() => fake.requests[0]?.aborted === true);
    expect(fake.requests[0]?.aborted).toBe(true);
    await expect(reading).rejects.toThrow();
  });

  test("a caller that reads to the end has not aborted", async () => {
    await collect("m");
    await Bun.sleep(20);
    expect(fake.requests[0]?.aborted).toBe(false);
  });
});

test("keeps its requests, and lists the models it has seen", async () => {
  await collect("m", "what?");
  const [request] = fake.requests;
  expect(request).toMatchObject({ model: "m", headers: { authorization: "Bearer secret" } });
  expect(request?.body.messages).toEqual([{ role: "user", content: "what?" }]);
  const models: unknown = await (await fetch(`${fake.url}/models`)).json();
  expect(models).toMatchObject({ data: [{ id: "m" }] });
});
