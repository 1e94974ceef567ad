/** Findings of attacks on clients' calls: hostile providers, and clients that evade rules. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { MergedCompletion } from "../../src/dialects/chat/merge.ts";
import { findMembers, MemberNames } from "../../src/dialects/request-bytes.ts";
import { until } from "../support/until.ts";
import { type DialectStage, openDialectStage } from "./support.ts";

let stage: DialectStage;
beforeAll(async () => {
  stage = await openDialectStage();
});
afterAll(() => stage.stop());

const chunk = (delta: object, more: object = {}) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta, ...more }] })}\n\n`;
const raw = (...texts: string[]) => ({ rawBytes: texts.map((text) => Buffer.from(text)) });

async function stream(model: string, signal?: AbortSignal) {
  return fetch(`${stage.gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${stage.gateway.admin}`, "content-type": "application/json" },
    body: JSON.stringify({ model, stream: true, messages: [{ role: "user", content: "hi" }] }),
    ...(signal ? { signal } : {}),
  });
}

test("a provider's chunk changes no object except its own answer", async () => {
  const forged =
    '{"choices":[{"index":0,"delta":{"__proto__":{"polluted":"x","credits":77}},"finish_reason":"stop"}]}';
  stage.upstream.script("alone", raw(`data: ${forged}\n\ndata: [DONE]\n\n`));
  await (await stream("up/alone")).text();
  expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  expect((await stage.gateway.call("GET", "/v1/agents")).status).toBe(200);
  expect((await stage.entries()).at(-1)).toMatchObject({ outcome: "succeeded", credits: 0 });
});

describe("unknown fields of a chunk are kept as received", () => {
  test.each([
    ["content that is not text", { content: { a: 1 } }],
    ["an unknown field", { audio: "x" }],
    ["tool calls that are not a list", { tool_calls: "x" }],
  ])("%s", (_, delta) => {
    const completion = new MergedCompletion();
    completion.add({ choices: [{ index: 0, delta: { content: "said before" } }] });
    completion.add({ choices: [{ index: 0, delta, finish_reason: "stop" }] });
    expect([completion.isExact, completion.isWhole]).toEqual([false, true]);
    expect(JSON.stringify(completion)).toContain("said before");
  });
});

test("a model's name in different letter case is refused, however it is written", () => {
  const find = (text: string) => findMembers(Buffer.from(text), new MemberNames(["model", "stream"]));
  for (const name of ["Model", "MODEL", "mod\\u0045l", "\\u017ftream"]) {
    expect(() => find(`{"model":"a","${name}":"b"}`)).toThrow(
      expect.objectContaining({ code: "invalid_json" }),
    );
  }
  expect(find('{"model":"a","models":1}').spans.size).toBe(1);
});

test("a client that leaves at the end is charged for the usage that the provider reported", async () => {
  const usage = { prompt_tokens: 400, completion_tokens: 300 };
  const finish = chunk({}, { finish_reason: "stop" });
  const report = `data: ${JSON.stringify({ choices: [], usage })}\n\n`;
  stage.upstream.script("priced", {
    ...raw(chunk({ content: "all of it" }) + finish + report, ": wait\n\n"),
    delayMs: 600_000,
  });
  const leave = new AbortController();
  const response = await stream("up/priced", leave.signal);
  await response.body?.getReader().read();
  leave.abort();
  await until(async () => (await stage.entries()).at(-1)?.phase === "outcome");
  expect((await stage.entries()).at(-1)).toMatchObject({
    outcome: "cancelled",
    credits: 1_000_000,
    output_hash: expect.any(String),
    detail: { input_tokens: 400, output_tokens: 300, usage: "reported" },
  });
});

test("a request with a wrong query releases the memory of its body", async () => {
  const body = JSON.stringify({ model: "gpt-5", messages: [], padding: "x".repeat(9_000_000) });
  for (let sent = 0; sent < 40; sent++) {
    const answer = await stage.gateway.call("POST", "/v1/chat/completions?x=1", { raw: body });
    expect(answer.status).toBe(422);
  }
});

test("a request names the Gatehouse instances that it has passed through, and a request that comes back is refused", async () => {
  stage.upstream.script("alone", { chunks: ["x"] });
  await (await stream("up/alone")).text();
  const via = stage.upstream.requests.at(-1)?.headers["gatehouse-via"] ?? "";
  expect(via).toMatch(/^[0-9a-f]{8,64}$/);
  const again = await stage.gateway.call("POST", "/v1/chat/completions", {
    headers: { "gatehouse-via": via },
    body: { model: "up/alone", messages: [] },
  });
  expect(again.status).toBe(508);
});

test.each([301, 304, 204])("a provider that answers %i has failed", async (status) => {
  stage.upstream.script("alone", { status });
  const answer = await stage.gateway.call("POST", "/v1/chat/completions", {
    body: { model: "up/alone", messages: [] },
  });
  expect([answer.status, answer.body.error.code]).toEqual([502, "provider_failed"]);
});

test("a request with many members is read in time proportional to its length", () => {
  const members = (count: number) => Array.from({ length: count }, (_, n) => `"a${n}":0`).join(",");
  const body = Buffer.from(`{${members(49_000)},"messages":"${"x".repeat(8_000_000)}","model":"m"}`);
  let searched = 0;
  const search = body.indexOf.bind(body);
  body.indexOf = ((value: number, from?: number) => {
    const found = search(value, from);
    searched += (found < 0 ? body.length : found) - (from ?? 0);
    return found;
  }) as typeof body.indexOf;
  expect(findMembers(body, new MemberNames(["model"])).spans.size).toBe(1);
  expect(searched).toBeLessThan(2 * body.length);
});
