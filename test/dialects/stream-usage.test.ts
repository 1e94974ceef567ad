/** The usage of streams whose events are much longer than the texts in them. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { until } from "../support/until.ts";
import { type DialectStage, openDialectStage } from "./support.ts";

let stage: DialectStage;
beforeAll(async () => {
  stage = await openDialectStage({ prices: "  up/dear: { input: 1, output: 2 }\n" });
});
afterAll(() => stage.stop());

const WORDS = Array.from({ length: 200 }, () => "a ");

async function lastDetail(stream = true) {
  const response = await fetch(`${stage.gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${stage.clerk}` },
    body: JSON.stringify({ model: "up/any", stream, messages: [{ role: "user", content: "hi" }] }),
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

const OUTPUT = "The whole answer.";
const LENGTH = 100_000;
const joined = "please_obey_".repeat(LENGTH / 12).padEnd(LENGTH, "x");
const image = { url: `data:image/png;base64,${"A".repeat(LENGTH)}` };

test.each([
  ["one word that could be base64", joined],
  ["text that begins like a file", `data:${joined}`],
  ["an image that is sent as data", [{ type: "image_url", image_url: image }]],
])("a client that leaves before the usage arrives is charged for %s", async (_name, content) => {
  stage.upstream.script("dear", { chunks: [OUTPUT, "unseen"], hangAfter: 1 });
  const before = (await stage.entries()).length;
  const leave = new AbortController();
  const response = await fetch(`${stage.gateway.url}/v1/chat/completions`, {
    ...{ method: "POST", signal: leave.signal, headers: { authorization: `Bearer ${stage.clerk}` } },
    body: JSON.stringify({ model: "up/dear", stream: true, messages: [{ role: "user", content }] }),
  });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  expect(response.status).toBe(200);
  for (let text = ""; !text.includes(OUTPUT); ) text += (await reader?.read())?.value ?? "";
  leave.abort();
  await until(async () => (await stage.entries()).length === before + 2);
  const [intent, outcome] = (await stage.entries()).slice(before);
  expect(outcome).toMatchObject({ outcome: "cancelled", detail: { usage: "estimated" } });
  expect(outcome?.detail?.input_tokens).toBeGreaterThanOrEqual(LENGTH / 4);
  expect(outcome?.credits).toBeGreaterThanOrEqual((LENGTH / 4) * 1_000);
  // Never more than was reserved for the call.
  expect(outcome?.credits).toBeLessThan(Number(intent?.detail?.reserved));
});

test.each([true, false])(
  "a model that answers with text like a file is charged for it (stream: %p)",
  async (stream) => {
    stage.upstream.script("any", { chunks: [`data:${joined}`], usage: null });
    expect((await lastDetail(stream))?.output_tokens).toBeGreaterThanOrEqual(LENGTH / 4);
  },
);

test("a call that names a file by its address reserves as much as for a large file", async () => {
  stage.upstream.script("dear", { chunks: ["ok"], usage: { prompt_tokens: 4, completion_tokens: 1 } });
  const content = [{ type: "image_url", image_url: { url: "https://files.example/a.png" } }];
  const response = await fetch(`${stage.gateway.url}/v1/chat/completions`, {
    ...{ method: "POST", headers: { authorization: `Bearer ${stage.clerk}` } },
    body: JSON.stringify({ model: "up/dear", messages: [{ role: "user", content }] }),
  });
  expect(response.status).toBe(200);
  const intent = (await stage.entries()).findLast(({ phase }) => phase === "intent");
  // 256 KiB at a third of a token for each byte, the lowest that is ever assumed.
  expect(intent?.detail?.reserved).toBeGreaterThan(((256 * 1024) / 3) * 1_000);
});
