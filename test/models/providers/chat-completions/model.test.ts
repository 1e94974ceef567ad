/** Our model sends the requests of the package, reports its errors, and reads no faster than it is read. */
import { expect, test } from "bun:test";
import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import { bothModels, eventStream, PROMPT, type SentRequest, type Settings, streamedBy } from "./both.ts";

const encoder = new TextEncoder();
const event = (value: object) => encoder.encode(`data: ${JSON.stringify(value)}\n\n`);
const text = (content: string) => event({ choices: [{ delta: { content } }] });
const END = event({ choices: [{ delta: {}, finish_reason: "stop" }] });
const SIGNED = event({
  choices: [
    {
      delta: {
        tool_calls: [
          {
            ...{ index: 0, id: "c1", function: { name: "f", arguments: "{}" } },
            extra_content: { google: { thought_signature: "s" } },
          },
        ],
      },
      finish_reason: "tool_calls",
    },
  ],
});

test.each<[string, Settings, Partial<LanguageModelV4CallOptions>]>([
  ["without a key", {}, {}],
  ["with a key", { apiKey: "secret" }, {}],
  ["with an empty key", { apiKey: "" }, {}],
  [
    "with headers",
    { apiKey: "secret", headers: { "User-Agent": "me", "X-A": "1" } },
    { headers: { "x-b": "2" } },
  ],
  ["with another key in a header", { apiKey: "secret", headers: { authorization: "Basic x" } }, {}],
  [
    "with all settings",
    {},
    {
      ...{ maxOutputTokens: 5, temperature: 0.5, topP: 0.9, topK: 3, seed: 1, stopSequences: ["x"] },
      ...{ frequencyPenalty: 1, presencePenalty: 1, reasoning: "high" },
      tools: [{ type: "function", name: "f", inputSchema: { type: "object" } }],
      toolChoice: { type: "required" },
      responseFormat: { type: "json", schema: { type: "object" } },
      providerOptions: { openaiCompatible: { strictJsonSchema: false, user: "u" } },
    },
  ],
  [
    "with options for the provider",
    { name: "open-router" },
    { providerOptions: { openRouter: { extra: 1 } } },
  ],
  [
    "with options in its own spelling",
    { name: "open-router" },
    { providerOptions: { "open-router": { extra: 1 } } },
  ],
  ["of a name with a dot", { name: "a.b" }, { providerOptions: { a: { extra: 1 } } }],
])("the same request and metadata %s", async (_, settings, options) => {
  const sent: SentRequest[] = [];
  const { ours, theirs } = bothModels(() => eventStream([SIGNED]), settings, sent);
  expect(await streamedBy(ours, options)).toEqual(await streamedBy(theirs, options));
  const [first, second, ...others] = sent;
  expect(others).toEqual([]);
  expect(first).toBeDefined();
  expect(first).toEqual(second);
});

test("the same description of the request and the response", async () => {
  const { ours, theirs } = bothModels(() => eventStream([END]));
  const [{ stream: a, ...our }, { stream: b, ...their }] = [
    await ours.doStream({ prompt: PROMPT }),
    await theirs.doStream({ prompt: PROMPT }),
  ];
  expect(our).toEqual(their);
  await Promise.all([a.cancel(), b.cancel()]);
  expect([ours.provider, ours.modelId]).toEqual([theirs.provider, theirs.modelId]);
});

test.each<[string, () => Response | Promise<Response>]>([
  ["an error", () => Response.json({ error: { message: "no", code: 1, x: 2 } }, { status: 400 })],
  ["an error that may pass", () => Response.json({ error: { message: "no" } }, { status: 503 })],
  ["an error of another form", () => Response.json({ message: "no" }, { status: 400, statusText: "Bad" })],
  ["an error that is no JSON", () => new Response("no", { status: 500, statusText: "Bad" })],
  ["an empty error", () => new Response("", { status: 404, statusText: "Missing" })],
  ["no body", () => new Response(null)],
  ["no response", () => Promise.reject(Object.assign(new Error("refused"), { code: "ECONNREFUSED" }))],
])("the same failure for %s", async (_, answer) => {
  const { ours, theirs } = bothModels(answer);
  const failureOf = (model: typeof ours) =>
    model.doStream({ prompt: PROMPT }).then(
      () => null,
      (error: unknown) => ({ ...Object(error), message: String(error) }),
    );
  const failure = await failureOf(ours);
  expect(failure).not.toBeNull();
  expect(failure).toEqual(await failureOf(theirs));
});

/** A body that counts how much of it was read, and keeps the reason with which it was cancelled. */
function countedBody(parts: readonly Uint8Array[]) {
  const state = { read: 0, cancelled: undefined as unknown };
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const next = parts[state.read++];
        if (next) controller.enqueue(next);
        else controller.close();
      },
      cancel(reason) {
        state.cancelled = reason;
      },
    },
    { highWaterMark: 0 },
  );
  return { state, response: new Response(body, { headers: { "content-type": "text/event-stream" } }) };
}

test("nothing is read before a part is asked for", async () => {
  const { state, response } = countedBody([encoder.encode(": hi\n\n"), text("a"), text("b"), END]);
  const { stream } = await bothModels(() => response).ours.doStream({ prompt: PROMPT });
  const reader = stream.getReader();
  expect((await reader.read()).value).toMatchObject({ type: "stream-start" });
  expect(state.read).toBe(0);
  expect((await reader.read()).value).toMatchObject({ type: "text-start" });
  expect((await reader.read()).value).toMatchObject({ type: "text-delta", delta: "a" });
  expect(state.read).toBe(2);
  expect((await reader.read()).value).toMatchObject({ type: "text-delta", delta: "b" });
  expect(state.read).toBe(3);
  await reader.cancel("enough");
  expect(state).toEqual({ read: 3, cancelled: "enough" });
});

test("a reader that cancels while it waits ends the request", async () => {
  const cancelled = Promise.withResolvers<unknown>();
  const body = new ReadableStream<Uint8Array>({ cancel: (reason) => cancelled.resolve(reason) });
  const { ours } = bothModels(() => new Response(body));
  const { stream } = await ours.doStream({ prompt: PROMPT });
  const reader = stream.getReader();
  await reader.read();
  const waiting = reader.read();
  await reader.cancel("enough");
  expect(await waiting).toMatchObject({ done: true });
  expect(await cancelled.promise).toBe("enough");
});

test("an answer that cannot be continued ends its request", async () => {
  const unnamed = event({ choices: [{ delta: { tool_calls: [{ function: {} }] } }] });
  const { state, response } = countedBody([text("a"), unnamed, text("b")]);
  const { ours } = bothModels(() => response);
  const { failure } = await streamedBy(ours, { includeRawChunks: false });
  expect(failure).toMatchObject({ name: "AI_InvalidResponseDataError" });
  expect(state.read).toBe(2);
  expect(state.cancelled).toMatchObject({ name: "AI_InvalidResponseDataError" });
});

test("raw chunks are passed on only if they are asked for", async () => {
  const { ours } = bothModels(() => eventStream([text("a"), END]));
  const typesOf = async (options: Partial<LanguageModelV4CallOptions>) =>
    (await streamedBy(ours, options)).parts.map((part) => Reflect.get(Object(part), "type"));
  expect(await typesOf({ includeRawChunks: true })).toContain("raw");
  expect(await typesOf({ includeRawChunks: false })).not.toContain("raw");
});
