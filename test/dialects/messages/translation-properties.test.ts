/** Generated answers and conversations, translated there and back. */
import { expect, test } from "bun:test";
import type {
  LanguageModelV4Content,
  LanguageModelV4StreamPart,
  SharedV4ProviderMetadata,
} from "@ai-sdk/provider";
import fc from "fast-check";
import { MergedMessage } from "../../../src/dialects/messages/merge.ts";
import { MessagesStreamReader } from "../../../src/dialects/messages/stream.ts";
import { MESSAGES_TRANSLATION } from "../../../src/dialects/messages/translation/translation.ts";

const HEAD = { id: "1", model: "p/m", created: 1 };
const TOOLS = [{ name: "search", input_schema: { type: "object" } }];
const REQUEST = {
  ...{ model: "m", max_tokens: 100, thinking: { type: "adaptive" }, tools: TOOLS },
  messages: [{ role: "user", content: "Hello" }],
};
const TARGETS = [
  { provider: "gem", kind: "google", supportedUrls: {} },
  { provider: "up", kind: "openai-compatible", supportedUrls: {} },
  { provider: "work", kind: "openai", supportedUrls: {} },
] as const;

/** The metadata with which each kind signs. */
const METADATA: Readonly<Record<string, SharedV4ProviderMetadata>> = {
  google: { google: { thoughtSignature: "c2lnbmVk" } },
  "openai-compatible": { up: { thoughtSignature: "c2lnbmVk" } },
  openai: { openai: { itemId: "rs_1", reasoningEncryptedContent: "gAAAA" } },
};

const someText = fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 });
const json = fc.dictionary(fc.stringMatching(/^[a-z]{1,6}$/), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 4 });

type Piece =
  | { kind: "text"; text: string }
  | { kind: "reasoning"; text: string; isSigned: boolean }
  | { kind: "call"; input: Record<string, unknown>; isSigned: boolean };

const pieces: fc.Arbitrary<Piece[]> = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant("text" as const), text: someText }),
    fc.record({ kind: fc.constant("reasoning" as const), text: someText, isSigned: fc.boolean() }),
    fc.record({ kind: fc.constant("call" as const), input: json, isSigned: fc.boolean() }),
  ),
  { maxLength: 6 },
);
const target = fc.constantFrom(...TARGETS);
const USAGE = {
  inputTokens: { total: 7, noCache: 7, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 3, text: 3, reasoning: undefined },
};

function contentOf(answer: readonly Piece[], kind: string): LanguageModelV4Content[] {
  return answer.map((piece, index): LanguageModelV4Content => {
    const signed = METADATA[kind] ?? {};
    const providerMetadata = piece.kind !== "text" && piece.isSigned ? { providerMetadata: signed } : {};
    if (piece.kind === "text") return { type: "text", text: piece.text };
    if (piece.kind === "reasoning") return { type: "reasoning", text: piece.text, ...providerMetadata };
    const call = { toolCallId: `call_${index}`, toolName: "search", input: JSON.stringify(piece.input) };
    return { type: "tool-call", ...call, ...providerMetadata };
  });
}

/** The parts of each piece, in its own order. */
function partsOf(content: readonly LanguageModelV4Content[]): LanguageModelV4StreamPart[][] {
  return content.map((part, index): LanguageModelV4StreamPart[] => {
    const id = String(index);
    const halves = (text: string) => {
      const letters = [...text];
      const half = letters.length >> 1;
      return [letters.slice(0, half).join(""), letters.slice(half).join("")];
    };
    if (part.type === "text") return halves(part.text).map((delta) => ({ type: "text-delta", id, delta }));
    if (part.type === "reasoning") {
      const { providerMetadata } = part;
      return [
        { type: "reasoning-start", id },
        ...halves(part.text).map((delta) => ({ type: "reasoning-delta", id, delta }) as const),
        { type: "reasoning-end", id, ...(providerMetadata ? { providerMetadata } : {}) },
      ];
    }
    if (part.type !== "tool-call") throw new Error(`no parts of ${part.type}`);
    const { toolCallId, providerMetadata } = part;
    return [
      {
        ...{ type: "tool-input-start", id: toolCallId, toolName: "search" },
        ...(providerMetadata ? { providerMetadata } : {}),
      },
      ...halves(part.input).map((delta) => ({ type: "tool-input-delta", id: toolCallId, delta }) as const),
      { type: "tool-input-end", id: toolCallId },
      part,
    ];
  });
}

/** The content of a streamed message, after a check that it has one open block at a time. */
function merged(texts: readonly string[]): unknown {
  const message = new MergedMessage();
  const reader = new MessagesStreamReader();
  let open: unknown = null;
  for (const text of texts.join("").split("\n\n")) {
    if (text === "") continue;
    const event = JSON.parse(text.slice(text.indexOf("data: ") + 6));
    if (event.type === "content_block_start") {
      expect(open).toBeNull();
      open = event.index;
    } else if (event.type.startsWith("content_block")) expect(event.index).toBe(open);
    if (event.type === "content_block_stop") open = null;
    message.add(event);
    reader.read(Buffer.from(`${text}\n\n`));
  }
  expect(open).toBeNull();
  expect([message.isExact, message.isWhole]).toEqual([true, true]);
  expect(reader.usage).toMatchObject({ inputTokens: { total: 7 }, outputTokens: { total: 3 } });
  return JSON.parse(JSON.stringify(message));
}

const FINISH = { type: "finish", usage: USAGE, finishReason: { unified: "stop", raw: "stop" } } as const;

test("a streamed answer is the same message as the whole one", () => {
  fc.assert(
    fc.property(target, pieces, (to, answer) => {
      const content = contentOf(answer, to.kind);
      const writer = MESSAGES_TRANSLATION.writer(REQUEST, to, HEAD);
      const result = { content, finishReason: FINISH.finishReason, usage: USAGE, warnings: [] };
      const whole = JSON.parse(JSON.stringify(writer.whole(result)));
      const parts = [...partsOf(content).flat(), FINISH];
      expect(merged(parts.map((part) => writer.part(part)))).toEqual(whole);
    }),
  );
});

test("however the parts of an answer interleave, its blocks are whole and each text is in order", () => {
  fc.assert(
    fc.property(target, pieces, fc.infiniteStream(fc.nat()), (to, answer, picks) => {
      const content = contentOf(answer, to.kind);
      const queues = partsOf(content);
      const writer = MESSAGES_TRANSLATION.writer(REQUEST, to, HEAD);
      const texts: string[] = [];
      while (queues.some((queue) => queue.length > 0)) {
        const waiting = queues.filter((queue) => queue.length > 0);
        const next = waiting[(picks.next().value ?? 0) % waiting.length]?.shift();
        if (next) texts.push(writer.part(next));
      }
      texts.push(writer.part(FINISH));
      // biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary JSON.
      const { content: blocks } = merged(texts) as any;
      const ofType = (type: string, name: string) =>
        blocks
          .filter((block: { type: string }) => block.type === type)
          .map((block: object) => Reflect.get(block, name));
      const calls = content.filter((part) => part.type === "tool-call");
      const byId = new Map(calls.map((part) => [part.toolCallId, JSON.parse(part.input)]));
      const ids = ofType("tool_use", "id");
      expect(ids.toSorted()).toEqual([...byId.keys()].toSorted());
      expect(ofType("tool_use", "input")).toEqual(ids.map((id: string) => byId.get(id)));
      const thoughts = content.flatMap((part) => (part.type === "reasoning" ? [part.text] : []));
      const written = ofType("thinking", "thinking").filter((each: string) => each !== "");
      expect(written.toSorted()).toEqual(thoughts.toSorted());
      const letters = (parts: readonly string[]) => [...parts.join("")].toSorted().join("");
      expect(letters(ofType("text", "text"))).toBe(
        letters(content.flatMap((part) => (part.type === "text" ? [part.text] : []))),
      );
    }),
  );
});

test("an answer that a client sends back is the same conversation to the provider", () => {
  fc.assert(
    fc.property(target, pieces, (to, answer) => {
      const content = contentOf(answer, to.kind);
      const writer = MESSAGES_TRANSLATION.writer(REQUEST, to, HEAD);
      const result = { content, finishReason: FINISH.finishReason, usage: USAGE, warnings: [] };
      const message = JSON.parse(JSON.stringify(writer.whole(result)));
      const assistant = { role: "assistant", content: message.content };
      const messages = [...REQUEST.messages, assistant, { role: "user", content: "Go on" }];
      const { prompt } = MESSAGES_TRANSLATION.options({ ...REQUEST, messages }, to);
      const sent = prompt.find(({ role }) => role === "assistant")?.content ?? [];
      const expected = content.map((part) => {
        const { providerMetadata, ...rest } = part;
        const options = providerMetadata ? { providerOptions: providerMetadata } : {};
        return part.type === "tool-call"
          ? { ...rest, ...options, input: JSON.parse(part.input) }
          : { ...rest, ...options };
      });
      expect(JSON.parse(JSON.stringify(sent))).toEqual(JSON.parse(JSON.stringify(expected)));
    }),
  );
});

test("a request throws nothing but a refusal", () => {
  const block = fc.record(
    {
      type: fc.constantFrom("text", "image", "document", "tool_use", "tool_result", "thinking", "x"),
      text: fc.oneof(fc.string(), fc.constant(7)),
      ...{ source: fc.object(), content: fc.jsonValue(), id: fc.string(), name: fc.string() },
      ...{ input: fc.jsonValue(), thinking: fc.string(), signature: fc.string(), tool_use_id: fc.string() },
    },
    { requiredKeys: ["type"] },
  );
  const message = fc.record({
    role: fc.constantFrom("user", "assistant", "system", "tool"),
    content: fc.oneof(fc.string(), fc.array(block), fc.jsonValue()),
  });
  const request = fc.record(
    {
      ...{
        max_tokens: fc.oneof(fc.nat(), fc.string()),
        messages: fc.oneof(fc.array(message), fc.jsonValue()),
      },
      ...{ tools: fc.jsonValue(), thinking: fc.jsonValue(), output_config: fc.jsonValue() },
      ...{ system: fc.jsonValue(), metadata: fc.jsonValue(), context_management: fc.jsonValue() },
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(target, fc.oneof(request, fc.jsonValue()), (to, value) => {
      try {
        MESSAGES_TRANSLATION.options(value, to);
      } catch (error) {
        expect(String(Reflect.get(Object(error), "code"))).toMatch(
          /^(unsupported_parameter|validation_failed)$/,
        );
      }
    }),
    { numRuns: 500 },
  );
});
