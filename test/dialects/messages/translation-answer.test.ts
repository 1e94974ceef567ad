/** Answers of other kinds of providers as messages, whole and streamed. */
import { expect, test } from "bun:test";
import type {
  LanguageModelV4Content,
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamPart,
} from "@ai-sdk/provider";
import { MESSAGES_TRANSLATION } from "../../../src/dialects/messages/translation/translation.ts";
import { packSignature } from "../../../src/dialects/translation/signatures.ts";

const TARGET = { provider: "gem", kind: "google", supportedUrls: {} } as const;
const HEAD = { id: "1", model: "gem/pro", created: 1_700_000_000 };
const THINKING = { thinking: { type: "adaptive" } };
const USAGE = {
  inputTokens: { total: 30, noCache: 10, cacheRead: 15, cacheWrite: 5 },
  outputTokens: { total: 9, text: 5, reasoning: 4 },
};
const STOP = { unified: "stop", raw: undefined } as const;

type Part = LanguageModelV4StreamPart;
const FINISH: Part = { type: "finish", usage: USAGE, finishReason: STOP };

function whole(
  content: LanguageModelV4Content[],
  request: object = THINKING,
  more: Partial<LanguageModelV4GenerateResult> = {},
): Record<string, unknown> {
  const result = { content, finishReason: STOP, usage: USAGE, warnings: [], ...more };
  return { ...MESSAGES_TRANSLATION.writer(request, TARGET, HEAD).whole(result) };
}

/** The events of a stream, grouped by the parts that caused them. */
function streamed(parts: readonly Part[], request: object = THINKING): Record<string, unknown>[][] {
  const writer = MESSAGES_TRANSLATION.writer(request, TARGET, HEAD);
  return parts.map((part) => {
    const text = writer.part(part);
    if (text === "") return [];
    expect(text).toEndWith("\n\n");
    return text
      .slice(0, -2)
      .split("\n\n")
      .map((event) => {
        const [name, data = "", ...rest] = event.split("\n");
        expect(rest).toEqual([]);
        const value = JSON.parse(data.slice("data: ".length));
        expect(name).toBe(`event: ${value.type}`);
        return value;
      });
  });
}

/** A summary of the content's events: `+text`, its deltas, `-`. */
function outline(groups: readonly Record<string, unknown>[][]): string {
  // biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary JSON.
  const short = (event: any): string => {
    if (event.type === "content_block_start") return `+${event.index}${event.content_block.type}`;
    if (event.type === "content_block_stop") return `-${event.index}`;
    if (event.type !== "content_block_delta") return event.type.replace("message_", "");
    const { text, thinking, partial_json, signature } = event.delta;
    return `${event.index}:${text ?? thinking ?? partial_json ?? (signature ? "sig" : "?")}`;
  };
  return groups.map((group) => group.map(short).join(" ")).join(" | ");
}

const text = (delta: string, id = "t"): Part => ({ type: "text-delta", id, delta });
const input = (id: string, delta: string): Part => ({ type: "tool-input-delta", id, delta });
const begin = (id: string): Part => ({ type: "tool-input-start", id, toolName: `tool_${id}` });
const called = (id: string, args: string): Part => ({
  ...{ type: "tool-call", toolCallId: id, toolName: `tool_${id}`, input: args },
});

test("parts that a message cannot contain end the call", () => {
  const file = { type: "file", mediaType: "image/png", data: { type: "data", data: "iVBO" } } as const;
  const result = { type: "tool-result", toolCallId: "a", toolName: "b", result: "c" } as const;
  const hosted = { ...called("a", "{}"), providerExecuted: true } as LanguageModelV4Content & Part;
  for (const part of [file, result, hosted, { type: "custom", kind: "openai.compaction" } as const]) {
    expect(() => whole([part])).toThrow("a part that a message cannot contain");
    expect(() => streamed([part])).toThrow("a part that a message cannot contain");
  }
});

test("an error in the stream is thrown unchanged, before any part of the message if none was written", () => {
  const writer = MESSAGES_TRANSLATION.writer(THINKING, TARGET, HEAD);
  expect(writer.part({ type: "stream-start", warnings: [] })).toBe("");
  expect(writer.part({ type: "response-metadata", id: "x" })).toBe("");
  expect(writer.part({ type: "text-start", id: "t" })).toBe("");
  const error = new Error("overloaded");
  expect(() => writer.part({ type: "error", error })).toThrow(error);
});

test("a whole answer", () => {
  const answer = whole([
    { type: "reasoning", text: "Hm.", providerMetadata: { google: { thoughtSignature: "s" } } },
    { type: "text", text: "It rains." },
  ]);
  const signature = packSignature(TARGET, { google: { thoughtSignature: "s" } });
  expect(answer).toEqual({
    ...{ id: "msg_1", type: "message", role: "assistant", model: "gem/pro" },
    content: [
      { type: "thinking", thinking: "Hm.", signature },
      { type: "text", text: "It rains." },
    ],
    ...{ stop_reason: "end_turn", stop_sequence: null },
    usage: {
      ...{ input_tokens: 10, cache_creation_input_tokens: 5, cache_read_input_tokens: 15 },
      ...{ output_tokens: 9, output_tokens_details: { thinking_tokens: 4 } },
    },
  });
});

test("a streamed answer", () => {
  const groups = streamed([
    { type: "stream-start", warnings: [] },
    { type: "text-start", id: "t" },
    text("It "),
    text(""),
    text("rains."),
    { type: "text-end", id: "t" },
    FINISH,
  ]);
  expect(outline(groups)).toBe(" |  | start +0text 0:It  |  | 0:rains. | -0 | delta stop");
  expect(groups[2]?.[0]).toEqual({
    type: "message_start",
    message: {
      ...{ id: "msg_1", type: "message", role: "assistant", model: "gem/pro", content: [] },
      ...{ stop_reason: null, stop_sequence: null, usage: { input_tokens: 0, output_tokens: 0 } },
    },
  });
  expect(groups.at(-1)?.[0]).toMatchObject({
    delta: { stop_reason: "end_turn", stop_sequence: null },
    usage: { input_tokens: 10, output_tokens: 9 },
  });
});

test("an empty answer is a message without content", () => {
  expect(outline(streamed([{ type: "stream-start", warnings: [] }, FINISH]))).toBe(" | start delta stop");
  expect(whole([]).content).toEqual([]);
  expect(whole([{ type: "text", text: "" }]).content).toEqual([]);
});

test("calls that arrive interleaved are written one after the other", () => {
  const groups = streamed([
    begin("a"),
    begin("b"),
    input("b", "[1"),
    input("a", "{"),
    begin("c"),
    input("c", "3"),
    called("c", "3"),
    input("b", "]"),
    input("a", "}"),
    called("a", "{}"),
    called("b", "[1]"),
    FINISH,
  ]);
  expect(outline(groups)).toBe(
    "start +0tool_use |  |  | 0:{ |  |  |  |  | 0:} | -0 +1tool_use 1:[1 1:] | -1 +2tool_use 2:3 -2 | delta stop",
  );
});

test("a text that continues after a call is written to another block, and is not held back until the end", () => {
  const groups = streamed([
    text("Let me see. "),
    begin("a"),
    input("a", "{}"),
    called("a", "{}"),
    text("Done."),
    FINISH,
  ]);
  expect(outline(groups)).toBe(
    "start +0text 0:Let me see.  | -0 +1tool_use | 1:{} | -1 | +2text 2:Done. | -2 delta stop",
  );
});

test("blocks that no part ends are closed with the message", () => {
  const parts: Part[] = [
    { type: "reasoning-start", id: "r" },
    { type: "reasoning-delta", id: "r", delta: "Hm" },
    text("So"),
    begin("a"),
    FINISH,
  ];
  expect(outline(streamed(parts))).toBe(
    " | start +0thinking 0:Hm |  |  | 0:sig -0 +1text 1:So -1 +2tool_use -2 delta stop",
  );
});

test("a call whose input does not arrive in pieces still has its input", () => {
  expect(outline(streamed([called("a", '{"x":1}'), FINISH]))).toBe(
    'start +0tool_use 0:{"x":1} -0 | delta stop',
  );
  expect(outline(streamed([begin("a"), called("a", '{"x":1}'), FINISH]))).toBe(
    'start +0tool_use | 0:{"x":1} -0 | delta stop',
  );
  expect(outline(streamed([called("a", ""), FINISH]))).toBe("start +0tool_use -0 | delta stop");
});

test("the input of a call in a whole answer is its JSON, or its text if it is not JSON", () => {
  const inputs = ['{"x":1}', "", '{"x":'].map((args) => {
    const [block] = whole([called("a", args) as LanguageModelV4Content]).content as { input: unknown }[];
    return block?.input;
  });
  expect(inputs).toEqual([{ x: 1 }, {}, '{"x":']);
});

test("thoughts are left out for a client that did not request them, unless it has tools", () => {
  const thought: LanguageModelV4Content = { type: "reasoning", text: "Hm." };
  const parts: Part[] = [
    { type: "reasoning-start", id: "r" },
    { type: "reasoning-delta", id: "r", delta: "Hm." },
    { type: "reasoning-end", id: "r" },
    FINISH,
  ];
  const tools = [{ name: "x", input_schema: {} }];
  const cases: readonly (readonly [object, boolean])[] = [
    [{}, false],
    [{ tools: [] }, false],
    [{ thinking: { type: "disabled" }, tools }, false],
    [{ tools }, true],
    [{ thinking: { type: "enabled", budget_tokens: 9 } }, true],
  ];
  for (const [request, isShown] of cases) {
    expect(whole([thought], request).content).toHaveLength(isShown ? 1 : 0);
    expect(outline(streamed(parts, request)).includes("thinking")).toBe(isShown);
  }
});

test("only the signature of omitted thoughts is written", () => {
  const request = { thinking: { type: "adaptive", display: "omitted" } };
  const providerMetadata = { google: { thoughtSignature: "s" } };
  const parts: Part[] = [
    { type: "reasoning-start", id: "r" },
    { type: "reasoning-delta", id: "r", delta: "Hm.", providerMetadata },
    { type: "reasoning-end", id: "r" },
    FINISH,
  ];
  expect(outline(streamed(parts, request))).toBe(" | start +0thinking | 0:sig -0 | delta stop");
  const signature = packSignature(TARGET, providerMetadata);
  expect(whole([{ type: "reasoning", text: "Hm.", providerMetadata }], request).content).toEqual([
    { type: "thinking", thinking: "", signature },
  ]);
});

test("a signed call has its signature in empty thoughts, which precede it if the signature is known by then", () => {
  const providerMetadata = { google: { thoughtSignature: "s" } };
  const early = streamed([{ ...begin("a"), providerMetadata } as Part, called("a", "{}"), FINISH]);
  expect(outline(early)).toBe("start +0thinking 0:sig -0 +1tool_use | 1:{} -1 | delta stop");
  const late = streamed([begin("a"), { ...called("a", "{}"), providerMetadata } as Part, FINISH]);
  expect(outline(late)).toBe("start +0tool_use | 0:{} -0 +1thinking 1:sig -1 | delta stop");
  const signed = { ...called("a", "{}"), providerMetadata } as LanguageModelV4Content;
  const signature = packSignature(TARGET, providerMetadata, "a");
  expect(whole([signed]).content).toEqual([
    { type: "thinking", thinking: "", signature },
    { type: "tool_use", id: "a", name: "tool_a", input: {} },
  ]);
  // Metadata that only names a call is not a signature.
  const named = { ...called("a", "{}"), providerMetadata: { openai: { itemId: "fc_1" } } } as Part;
  expect(outline(streamed([named, FINISH]))).toBe("start +0tool_use 0:{} -0 | delta stop");
});

test("addresses of sources are citations of the adjacent text", () => {
  const source = {
    type: "source",
    sourceType: "url",
    id: "1",
    url: "https://example.org/",
    title: "Example",
  } as const;
  const citation = {
    ...{ type: "web_search_result_location", url: "https://example.org/", title: "Example" },
    ...{ cited_text: "", encrypted_index: "" },
  };
  expect(whole([{ type: "text", text: "So" }, source]).content).toEqual([
    { type: "text", text: "So", citations: [citation] },
  ]);
  const citations = [{ source, citedText: "it is so" }];
  expect(whole([{ type: "text", text: "So", citations }]).content).toEqual([
    { type: "text", text: "So", citations: [{ ...citation, cited_text: "it is so" }] },
  ]);
  const deltas = (parts: Part[]) =>
    streamed(parts)
      .flat()
      .map((event) => Reflect.get(Object(event.delta), "citation"));
  expect(deltas([text("So"), source, FINISH])).toContainEqual(citation);
  expect(deltas([source, text("So"), FINISH])).toContainEqual(citation);
  expect(deltas([source, FINISH])).toContainEqual(citation);
});

test("the reasons why an answer ended", () => {
  const reason = (unified: string, raw?: string, content: LanguageModelV4Content[] = []) =>
    whole(content, {}, { finishReason: { unified, raw } as never }).stop_reason;
  expect(reason("stop")).toBe("end_turn");
  expect(reason("length")).toBe("max_tokens");
  expect(reason("content-filter")).toBe("refusal");
  expect(reason("tool-calls")).toBe("tool_use");
  expect(reason("other")).toBe("end_turn");
  expect(reason("stop", "stop_sequence")).toBe("stop_sequence");
  // Some servers do not report that there are calls.
  expect(reason("stop", "stop", [called("a", "{}") as LanguageModelV4Content])).toBe("tool_use");
  expect(streamed([called("a", "{}"), FINISH]).at(-1)?.[0]).toMatchObject({
    delta: { stop_reason: "tool_use" },
  });
});

test("usage that is not reported is 0", () => {
  const none = { total: undefined, noCache: undefined, cacheRead: undefined, cacheWrite: undefined };
  const unreported = {
    inputTokens: none,
    outputTokens: { total: undefined, text: undefined, reasoning: undefined },
  };
  const zero = {
    ...{ input_tokens: 0, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 0 },
  };
  expect(whole([], {}, { usage: unreported }).usage).toEqual(zero);
  const total = { ...unreported, inputTokens: { ...none, total: 10, cacheRead: 4 } };
  expect(whole([], {}, { usage: total }).usage).toEqual({
    ...zero,
    input_tokens: 6,
    cache_read_input_tokens: 4,
  });
});

test("data that waits for a block that never ends is bounded", () => {
  const writer = MESSAGES_TRANSLATION.writer(THINKING, TARGET, HEAD);
  writer.part({ type: "reasoning-start", id: "r" });
  expect(writer.part({ type: "reasoning-delta", id: "r", delta: "Hm" })).toContain("thinking_delta");
  const megabyte = "x".repeat(1024 * 1024);
  const written: string[] = [];
  expect(() => {
    for (let count = 0; count < 17; count++) written.push(writer.part(text(megabyte)));
  }).toThrow("too large");
  expect(written.join("")).toBe("");
});
