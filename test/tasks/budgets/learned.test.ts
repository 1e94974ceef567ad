/** Generated requests to a provider that counts honestly: none is counted as more than was expected. */
import { afterAll, expect, test } from "bun:test";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import fc from "fast-check";
import { type AfterModelCall, defineTool, runAgent } from "../../../src/agents/index.ts";
import { TokenEstimates } from "../../../src/models/expected-cost.ts";
import { startFakeModel } from "../../support/fake-model.ts";

const upstream = startFakeModel({ record: false });
afterAll(() => upstream.close());

const unit = fc.constantFrom("word ", "and ", "\n", '"', "{", "ä", "漢", "😀", "0x1f ");
const text = fc.string({ unit, maxLength: 2_000 });
const request = fc.record({
  instructions: text,
  prompt: text.filter((given) => given !== ""),
  descriptions: fc.array(text, { maxLength: 20 }),
  answers: fc.array(text, { maxLength: 3 }),
});

test.each([4, 3])("one token per %d bytes", async (bytesPerToken) => {
  upstream.script("honest", ({ body }) => ({
    chunks: ["ok"],
    usage: {
      prompt_tokens: Math.ceil(Buffer.byteLength(JSON.stringify(body)) / bytesPerToken),
      completion_tokens: 1,
    },
  }));
  const provider = createOpenAICompatible({ name: "up", baseURL: upstream.url, includeUsage: true });
  const estimates = new TokenEstimates();
  let calls = 0;
  await fc.assert(
    fc.asyncProperty(request, async ({ instructions, prompt, descriptions, answers }) => {
      const tools = descriptions.map((description, index) =>
        defineTool({ name: `t${index}`, description, inputSchema: { type: "object" }, execute: () => null }),
      );
      const messages = answers.flatMap((output, index) => [
        {
          role: "assistant",
          text: "",
          toolCalls: [{ id: `c${index}`, tool: "t0", arguments: { output } }],
        } as const,
        { role: "tool", results: [{ id: `c${index}`, tool: "t0", status: "succeeded", output }] } as const,
      ]);
      let expected = -1;
      const hooks = {
        beforeModelCall: (call: { sentBytes(): number }) => {
          expected = estimates.input("honest", call.sentBytes());
        },
        afterModelCall: ({ usage, status, sentBytes }: AfterModelCall) => {
          expect(status).toBe("succeeded");
          expect(usage.estimated).toBe(false);
          expect(expected).toBeGreaterThanOrEqual(usage.inputTokens);
          estimates.noteInput("honest", { sentBytes: sentBytes(), inputTokens: usage.inputTokens });
          calls += 1;
        },
      };
      const run = { model: provider("honest"), instructions, prompt, tools, messages, hooks };
      let last = "";
      for await (const event of runAgent(run)) last = event.type;
      expect(last).toBe("agent.finished");
    }),
    { numRuns: 150, seed: 7 },
  );
  expect(calls).toBe(150);
});
