/** The usage of streams whose events are much longer than the texts in them. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type DialectStage, openDialectStage } from "./support.ts";

let stage: DialectStage;
beforeAll(async () => {
  stage = await openDialectStage();
});
afterAll(() => stage.stop());

const WORDS = Array.from({ length: 200 }, () => "a ");

async function lastDetail() {
  const response = await fetch(`${stage.gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${stage.clerk}` },
    body: JSON.stringify({ model: "up/any", stream: true, messages: [{ role: "user", content: "hi" }] }),
  });
  await response.text();
  return (await stage.entries()).at(-1)?.detail;
}

test("a stream with one token per event is charged according to the provider's report", async () => {
  stage.upstream.script("any", { chunks: WORDS, usage: { prompt_tokens: 4, completion_tokens: 200 } });
  const detail = await lastDetail();
  expect(detail).toMatchObject({ input_tokens: 4, output_tokens: 200, usage: "reported" });
  expect(detail?.disbelieved).toBeUndefined();
});

test("the usage of a stream that breaks off is estimated from its texts, not from its bytes", async () => {
  stage.upstream.script("any", { chunks: WORDS, cutAfter: 180 });
  // Two bytes per word, and the role: four bytes per token.
  expect(await lastDetail()).toMatchObject({ output_tokens: expect.any(Number), usage: "estimated" });
  expect((await lastDetail())?.output_tokens).toBeLessThan(120);
});
