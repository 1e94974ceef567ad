import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { createMask } from "../../../src/base/masking/mask.ts";
import { toolAnswer } from "../../../src/connectors/mcp-upstream/answer.ts";
import { ConnectorError, type ToolAnswer } from "../../../src/connectors/source.ts";

const LIMIT = 1_000_000;
const answer = (result: Record<string, unknown>): ToolAnswer =>
  toolAnswer(result, { name: "up", mask: createMask(["hunter22"]) });
const text = (words: string) => ({ type: "text", text: words });

describe("anything but a CallToolResult is refused", () => {
  test.each([
    ["nothing", {}],
    ["content that is not a list", { content: "text" }],
    ["a block that is not an object", { content: ["text"] }],
    ["a block without a type", { content: [{ text: "a" }] }],
    ["structured content that is not an object", { structuredContent: [1] }],
  ])("%s", (_, result) => {
    expect(() => answer(result)).toThrow(ConnectorError);
  });
});

describe("is passed on", () => {
  test.each([
    ["an empty answer", { content: [] }],
    ["an error of the tool", { content: [text("no")], isError: true }],
    ["structured content", { content: [text("{}")], structuredContent: { a: [1] } }],
    ["an image", { content: [{ type: "image", data: "aGk=", mimeType: "image/png" }] }],
    ["audio", { content: [{ type: "audio", data: "aGk=", mimeType: "audio/wav" }] }],
    ["a resource", { content: [{ type: "resource", resource: { uri: "file:///a", text: "b" } }] }],
    ["a link", { content: [{ type: "resource_link", uri: "file:///a", name: "a" }] }],
    ["an unknown kind", { content: [{ type: "hologram", depth: 3 }] }],
    ["annotations", { content: [{ ...text("a"), annotations: { audience: ["user"] } }] }],
    ["a text that just fits", { content: [text("x".repeat(LIMIT))] }],
  ])("%s", (_, result) => {
    expect(answer(result)).toEqual(result);
  });

  test("structured content without other content", () => {
    expect(answer({ structuredContent: { a: 1 } })).toEqual({ content: [], structuredContent: { a: 1 } });
  });

  test("no other part of the result", () => {
    expect(answer({ content: [], _meta: { a: 1 }, isError: false, more: 1 })).toEqual({ content: [] });
  });
});

test("secrets are masked in every part", () => {
  const given = {
    content: [text("it is hunter22"), { type: "resource", resource: { uri: "u?k=hunter22" } }],
  };
  const shown = JSON.stringify(answer({ ...given, structuredContent: { a: ["hunter22"] } }));
  expect(shown).not.toContain("hunter22");
});

test("a secret at the cut is masked completely", () => {
  const { content } = answer({ content: [text(`${"x".repeat(LIMIT - 4)}hunter22 and more`)] });
  expect(JSON.stringify(content)).not.toContain("hunt");
});

describe("a result that is too large", () => {
  test("is cut at the limit, counted over all texts", () => {
    const { content } = answer({
      content: [text("a".repeat(600_000)), text("b".repeat(600_000)), text("c")],
    });
    expect(content).toEqual([
      text("a".repeat(600_000)),
      text("b".repeat(400_000)),
      text("[cut: the first 400000 of 600000 characters]"),
      text("[cut: the first 0 of 1 characters]"),
    ]);
  });

  test("is omitted if a part of it is useless", () => {
    const image = { type: "image", mimeType: "image/png", data: "A".repeat(LIMIT) };
    expect(answer({ content: [image, text("after")] }).content).toEqual([
      text(`[omitted: image (image/png) of ${JSON.stringify(image).length} characters]`),
      text("after"),
    ]);
  });

  test("is an error if it is structured", () => {
    expect(answer({ content: [], structuredContent: { a: "x".repeat(LIMIT) } })).toEqual({
      content: [
        text("The answer's structured content is too large: 1000008 characters. The limit is 1000000."),
      ],
      isError: true,
    });
  });

  test("also has a limit on blocks", () => {
    const { content } = answer({ content: Array.from({ length: 5_000 }, () => text("")) });
    expect(content).toHaveLength(1_001);
    expect(content.at(-1)).toEqual(text("[omitted: 4000 more blocks]"));
  });
});

test("whatever arrives, no more than the limit and its notes is passed on, and no half character", () => {
  const block = fc.oneof(
    fc.nat(700_000).map((length) => text("😀".repeat(length))),
    fc.nat(700_000).map((length) => ({ type: "image", data: "A".repeat(length) })),
  );
  fc.assert(
    fc.property(fc.array(block, { maxLength: 4 }), (content) => {
      const taken = answer({ content }).content;
      expect(JSON.stringify(taken).length).toBeLessThan(LIMIT + 1_000);
      for (const { text } of taken) if (typeof text === "string") expect(text.isWellFormed()).toBe(true);
    }),
    { numRuns: 20 },
  );
});
