/** The request of a translated stream stays in memory, and counts against its workspace. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { until } from "../support/until.ts";
import { openTranslationStage, type TranslationStage } from "./chat/translation-support.ts";

const REQUEST_BYTES = 9_000_000;
/** A workspace may have 192 MiB: 22 such requests. */
const FITTING = 22;

let stage: TranslationStage;
beforeAll(async () => {
  stage = await openTranslationStage();
});
afterAll(() => stage.stop());

const body = JSON.stringify({
  ...{ model: "gemini/held", stream: true },
  messages: [{ role: "user", content: "x".repeat(REQUEST_BYTES) }],
});

function ask(signal: AbortSignal): Promise<Response> {
  return fetch(`${stage.gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${stage.clerk}`, "content-type": "application/json" },
    ...{ body, signal },
  });
}

test("streams in progress leave room for no more requests than fit into memory, until they end", async () => {
  stage.google.script("held", { parts: [{ text: "one" }, { text: "two" }], hangAfter: 1 });
  const leave = new AbortController();
  const answers: Response[] = [];
  for (let n = 0; n < FITTING; n++) {
    const answer = await ask(leave.signal);
    expect(answer.status).toBe(200);
    answers.push(answer);
  }
  const refused = await ask(new AbortController().signal);
  expect([refused.status, refused.headers.get("gatehouse-code")]).toEqual([429, "rate_limited"]);
  leave.abort();
  await until(() => stage.google.requests.every(({ aborted }) => aborted));
  stage.google.script("held", { parts: [{ text: "one" }] });
  await until(async () => {
    const answer = await ask(new AbortController().signal);
    await answer.text();
    return answer.status === 200;
  });
}, 60_000);
