/** The tool results that the embedded model reads. */
import { expect, test } from "bun:test";
import type { LanguageModelV4Prompt } from "@ai-sdk/provider";
import { currentTurn, textOfPrompt } from "../../src/agents/extractive/turn.ts";

test("JSON in tool results may have as many members in total as a request; the rest stays text", () => {
  const wide = JSON.stringify(new Array(20_000).fill(0));
  const prompt: LanguageModelV4Prompt = [
    { role: "user", content: [{ type: "text", text: "What was found?" }] },
    {
      role: "tool",
      content: ["a", "b", "c"].map((toolCallId) => ({
        ...({ type: "tool-result", toolCallId, toolName: "look" } as const),
        output: { type: "text", value: wide } as const,
      })),
    },
  ];
  expect(currentTurn(prompt).results.map(({ value }) => typeof value)).toEqual([
    "object",
    "object",
    "string",
  ]);
  expect(textOfPrompt(prompt)).toBe(`What was found?${wide.repeat(3)}`);
});
