import { describe, expect, test } from "bun:test";
import type { LanguageModelV3, LanguageModelV3CallOptions } from "@ai-sdk/provider";
import {
  extractiveModel,
  inMemory,
  type Message,
  runAgent,
  type UserMessage,
} from "../../src/agents/index.ts";
import { contentBytes, exceedsText, requestBytes } from "../../src/agents/model/request-size.ts";
import { answers, collect, last, scripted } from "./support.ts";

const PNG = Buffer.from("not really a picture").toString("base64");
const question: UserMessage = {
  role: "user",
  text: "",
  parts: [
    { type: "text", text: "What is this?" },
    { type: "file", mediaType: "image/png", data: PNG },
    { type: "text", text: "And this?" },
    { type: "file", mediaType: "application/pdf", data: PNG },
  ],
};

describe("messages with parts", () => {
  test("reach a model of version 4 in order, with tagged data", async () => {
    const model = scripted("a", [answers("ok")]);
    await collect(runAgent({ model, prompt: [question] }));
    expect(model.calls[0]?.prompt).toEqual([
      {
        role: "user",
        content: [
          { type: "text", text: "What is this?" },
          { type: "file", mediaType: "image/png", data: { type: "data", data: PNG } },
          { type: "text", text: "And this?" },
          { type: "file", mediaType: "application/pdf", data: { type: "data", data: PNG } },
        ],
      },
    ]);
  });

  test("reach a model of version 3 with the plain base64", async () => {
    const calls: LanguageModelV3CallOptions[] = [];
    const model: LanguageModelV3 = {
      specificationVersion: "v3",
      provider: "test",
      modelId: "old",
      supportedUrls: {},
      doGenerate: () => Promise.reject(new Error("not scripted")),
      doStream: (options) => {
        calls.push(options);
        return Promise.reject(new Error("enough"));
      },
    };
    await collect(runAgent({ model, prompt: [question] }));
    expect(calls[0]?.prompt[0]?.content[1]).toEqual({ type: "file", mediaType: "image/png", data: PNG });
  });

  test("precede the parts with the message's text", async () => {
    const model = scripted("a", [answers("ok")]);
    await collect(runAgent({ model, prompt: [{ ...question, text: "Look." }] }));
    expect(model.calls[0]?.prompt[0]?.content[0]).toEqual({ type: "text", text: "Look." });
  });

  test("carry text files as text, which every provider accepts", async () => {
    const model = scripted("a", [answers("ok")]);
    const data = Buffer.from("größer,1\n").toString("base64");
    for (const mediaType of [
      "text/csv",
      "text/plain; charset=utf-8",
      "application/json",
      "application/ld+json",
    ]) {
      await collect(
        runAgent({ model, prompt: [{ role: "user", text: "", parts: [{ type: "file", mediaType, data }] }] }),
      );
      expect(model.calls.at(-1)?.prompt[0]?.content).toEqual([{ type: "text", text: "größer,1\n" }]);
    }
  });

  test.each([
    ["at once if the runtime can", true],
    ["without a function call for each byte if it cannot", false],
  ])("have long files of text decoded %s", async (_name, isAble) => {
    const text = "größer,1\n".repeat(50_000);
    const data = Buffer.from(text).toString("base64");
    const { fromBase64, from } = Uint8Array;
    // One function call for each byte of 6 MiB would block the event loop for half a second.
    const counted = { whole: 0, bytes: 0 };
    const replaced = {
      fromBase64: isAble
        ? (base64: string) => {
            counted.whole += 1;
            return fromBase64.call(Uint8Array, base64);
          }
        : undefined,
      from: (values: Iterable<unknown>, map: (value: unknown, index: number) => number) =>
        from.call(Uint8Array, [...values], (value, index) => {
          counted.bytes += 1;
          return map(value, index);
        }),
    };
    Object.assign(Uint8Array, replaced);
    try {
      const parts = [{ type: "file", mediaType: "text/csv", data }] as const;
      const model = scripted("a", [answers("ok")]);
      await collect(runAgent({ model, prompt: [{ role: "user", text: "", parts }] }));
      expect(model.calls[0]?.prompt[0]?.content).toEqual([{ type: "text", text }]);
    } finally {
      Object.assign(Uint8Array, { fromBase64, from });
    }
    expect(counted.bytes).toBe(0);
    expect(counted.whole > 0).toBe(isAble);
  });
});

describe("a prompt of several messages", () => {
  test("is the conversation that the model continues, and memory keeps all of it", async () => {
    const model = scripted("a", [answers("Four.")]);
    const prompt: Message[] = [
      { role: "user", text: "What is one and one?" },
      { role: "assistant", text: "Two.", toolCalls: [] },
      { role: "user", text: "And twice that?" },
    ];
    const memory = inMemory();
    const events = await collect(runAgent({ model, prompt, memory }));
    expect(last(events)).toMatchObject({ type: "agent.finished", output: "Four.", steps: 1 });
    expect(model.calls[0]?.prompt.map(({ role }) => role)).toEqual(["user", "assistant", "user"]);
    expect(await memory.load()).toEqual([...prompt, { role: "assistant", text: "Four.", toolCalls: [] }]);
  });

  test("must end with the user's message", async () => {
    const model = extractiveModel();
    const answer: Message = { role: "assistant", text: "Two.", toolCalls: [] };
    for (const prompt of [[], [answer], [{ role: "user", text: "?" } as const, answer]]) {
      expect(() => runAgent({ model, prompt }).next()).toThrow("prompt");
    }
  });
});

describe("the size of a file", () => {
  const sizeOf = (bytes: number) => {
    const data = "A".repeat(bytes);
    return [{ role: "user", text: "", parts: [{ type: "file", mediaType: "image/png", data }] }] as const;
  };

  test("counts in full for the request's size", () => {
    const content = { instructions: undefined, messages: sizeOf(3_000_000), tools: [] };
    expect(requestBytes(content)).toBeGreaterThanOrEqual(JSON.stringify(content.messages).length - 64);
  });

  test("is bounded for charges without the provider's count, and no count is too low for it", () => {
    const content = { instructions: undefined, messages: sizeOf(3_000_000), tools: [] };
    expect(contentBytes(content)).toBeLessThanOrEqual(256 * 1024);
    expect(exceedsText(content, 1)).toBe(false);
  });
});
