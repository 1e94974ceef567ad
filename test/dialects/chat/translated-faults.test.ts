/** Providers of another dialect that fail: what the client gets, and what the ledger records. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { GoogleBehaviour } from "../../support/fake-google.ts";
import { until } from "../../support/until.ts";
import { message, opening, textEvents } from "../messages-support.ts";
import { openTranslationStage, type TranslationStage, USER } from "./translation-support.ts";

let stage: TranslationStage;
beforeAll(async () => {
  stage = await openTranslationStage();
});
afterAll(() => stage.stop());

const ask = (model: string, stream: boolean) =>
  stage.post("/v1/chat/completions", { model, messages: USER, stream });

type Fault = [name: string, behaviour: GoogleBehaviour, status: number, code: string, reason: string];
const FAULTS: Fault[] = [
  ["answers 500", { status: 500 }, 502, "provider_failed", "http_500"],
  ["refuses our key", { status: 401 }, 502, "provider_failed", "http_401"],
  ["is busy", { status: 429, headers: { "retry-after": "7" } }, 429, "provider_busy", "rate_limited"],
  ["answers 504", { status: 504 }, 504, "provider_timeout", "timeout"],
  ["refuses the request", { status: 400 }, 400, "provider_refused", "http_400"],
];

describe("a provider of another dialect that", () => {
  for (const stream of [false, true]) {
    test.each(FAULTS)(
      `%s, asked for ${stream ? "a stream" : "a whole answer"}`,
      async (_, behaviour, status, code, reason) => {
        stage.google.script("alone", behaviour);
        const answer = await ask("gemini/alone", stream);
        expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([status, code]);
        expect(answer.headers.get("retry-after")).toBe(behaviour.headers?.["retry-after"] ?? null);
        expect((await stage.lastEntries()).map((entry) => [entry.phase, entry.outcome, entry.code])).toEqual([
          ["intent", "allowed", null],
          ["outcome", "failed", reason],
        ]);
      },
    );
  }

  test("reports an error message is shown without its address and our key", async () => {
    const told = `No sk-google-upstream at ${stage.google.url}/models: prompt too long`;
    stage.google.script("alone", { status: 400, message: told });
    const { text } = await ask("gemini/alone", false);
    const { message: shown } = JSON.parse(text).error;
    expect(shown).toContain("prompt too long");
    expect(shown).not.toContain("sk-google-upstream");
    expect(shown).not.toContain(new URL(stage.google.url).host);
  });

  const BROKEN: [name: string, behaviour: GoogleBehaviour, code: string, reason: string][] = [
    ["stops without an end", { parts: [{ text: "one" }], cutAfter: 1 }, "provider_failed", "interrupted"],
    [
      "reports an error",
      {
        parts: [{ text: "one" }],
        errorEvent: { error: { code: 503, message: "boom", status: "UNAVAILABLE" } },
      },
      "provider_failed",
      "http_503",
    ],
    [
      "sends a file",
      { parts: [{ text: "one" }, { inlineData: { mimeType: "image/png", data: "AAAA" } }] },
      "provider_failed",
      "provider_failed",
    ],
  ];
  test.each(BROKEN)(
    "%s in the middle of a stream ends it with an error event",
    async (_, script, code, reason) => {
      stage.google.script("alone", script);
      const { status, text } = await ask("gemini/alone", true);
      expect(status).toBe(200);
      expect(text).toContain('"content":"one"');
      const last = text.trimEnd().split("\n\n").at(-1) ?? "";
      expect(JSON.parse(last.replace("data: ", "")).error.code).toBe(code);
      expect(text).not.toContain("[DONE]");
      expect(text).not.toContain("boom");
      expect((await stage.lastEntries()).at(-1)).toMatchObject({ outcome: "failed", code: reason });
    },
  );

  const NEXT: [name: string, behaviour: GoogleBehaviour][] = [
    ["answers 500", { status: 500 }],
    ["is busy", { status: 429 }],
    ["reports an error at once", { errorEvent: { error: { code: 500, message: "boom" } } }],
    ["sends nothing", { cutAfter: 0 }],
  ];
  for (const stream of [false, true]) {
    test.each(NEXT.slice(0, stream ? NEXT.length : 2))(
      `%s is followed by the tier's next model, of a third dialect (stream: ${stream})`,
      async (_, behaviour) => {
        stage.google.script("first", behaviour);
        const content = [{ type: "text", text: "from the second" }];
        stage.anthropic.script("second", {
          ...(stream
            ? { events: textEvents(["from the second"], 5, 4) }
            : { message: message(content, { input_tokens: 5, output_tokens: 4 }) }),
        });
        const { status, text, headers } = await ask("tier:2", stream);
        expect([status, headers.get("gatehouse-model")]).toEqual([200, "claude/second"]);
        expect(text).toContain("from the second");
        const entries = await stage.lastEntries();
        expect(entries.map(({ phase, model, outcome }) => [phase, model, outcome])).toEqual([
          ["intent", "gemini/first", "allowed"],
          ["outcome", "gemini/first", "failed"],
          ["intent", "claude/second", "allowed"],
          ["outcome", "claude/second", "succeeded"],
        ]);
        expect(headers.get("gatehouse-ledger")).toBe(String(entries[2]?.seq));
      },
    );
  }
});

test("OpenAI's client throws for a stream that breaks", async () => {
  stage.google.script("alone", { parts: [{ text: "one" }], cutAfter: 1 });
  const stream = await stage.client.chat.completions.create({
    ...{ model: "gemini/alone", messages: USER, stream: true },
  });
  const texts: unknown[] = [];
  const read = async () => {
    for await (const { choices } of stream) texts.push(choices[0]?.delta.content);
  };
  await expect(read()).rejects.toThrow("failed before the answer was complete");
  expect(texts).toEqual(["one"]);
});

test("an error that the model reports within its stream becomes the stream's error event", async () => {
  const error = { type: "error", error: { type: "overloaded_error", message: "boom sk-upstream" } };
  const events = textEvents(["one", "two"], 5, 4).slice(0, 4);
  stage.anthropic.script("alone", { events: [...events, error] });
  const { text } = await ask("claude/alone", true);
  expect(text).toContain('"content":"one"');
  expect(text.trimEnd().split("\n\n").at(-1)).toContain('"code":"provider_failed"');
  expect(text).not.toContain("boom");
  expect(text).not.toContain("[DONE]");
});

test.each([false, true])(
  "a provider that is silent for as long as its timeout allows is abandoned (stream: %p)",
  async (stream) => {
    stage.google.script("silent", { gate: new Promise(() => {}) });
    const { status, text } = await ask("slow/silent", stream);
    expect([status, JSON.parse(text).error.code]).toEqual([504, "provider_timeout"]);
    await until(() => stage.google.requests.at(-1)?.aborted === true);
    expect((await stage.lastEntries()).at(-1)).toMatchObject({ outcome: "failed", code: "timeout" });
  },
);

test("a client that leaves ends the request to the provider, and is charged for the usage so far", async () => {
  stage.google.script("priced", { parts: [{ text: "one " }, { text: "two " }], hangAfter: 1 });
  const leave = new AbortController();
  const response = await fetch(`${stage.gateway.url}/v1/chat/completions`, {
    method: "POST",
    signal: leave.signal,
    headers: { authorization: `Bearer ${stage.clerk}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "gemini/priced", stream: true, messages: USER }),
  });
  await response.body?.getReader().read();
  leave.abort();
  await until(() => stage.google.requests.at(-1)?.aborted === true);
  await until(async () => (await stage.lastEntries()).at(-1)?.phase === "outcome");
  const entry = (await stage.lastEntries()).at(-1);
  expect(entry).toMatchObject({ outcome: "cancelled", detail: { usage: "estimated" } });
  expect(entry?.credits ?? 0).toBeGreaterThan(0);
});

test.each([false, true])(
  "a stop ends the call and the request to the provider (stream: %p)",
  async (stream) => {
    const gate = new Promise(() => {});
    const parts = [{ text: "one " }, { text: "two " }];
    stage.google.script("alone", stream ? { parts, hangAfter: 1 } : { parts, gate });
    const asked = stage.google.requests.length;
    const answer = ask("gemini/alone", stream);
    await until(() => stage.google.requests.length > asked);
    if (stream) await until(async () => (await stage.lastEntries()).length === 1);
    const person = await stage.gateway.token({ scopes: ["admin"], person: "Ann Example", role: "overseer" });
    await stage.gateway.call("POST", "/v1/agents/clerk/stop", { token: person });
    const { status, text } = await answer;
    expect(text).toContain('"code":"agent_stopped"');
    expect(text).not.toContain("[DONE]");
    if (!stream) expect(status).toBe(409);
    await until(() => stage.google.requests.at(-1)?.aborted === true);
    expect((await stage.lastEntries()).at(-1)).toMatchObject({ outcome: "cancelled", code: "agent_stopped" });
    await stage.gateway.call("POST", "/v1/agents/clerk/resume", { token: person });
  },
);

test("a policy that changes between the check and the request prevents the request", async () => {
  const gate = Promise.withResolvers<void>();
  stage.google.script("first", { status: 500, gate: gate.promise });
  stage.anthropic.script("second", { message: message([], { input_tokens: 1, output_tokens: 1 }) });
  const [before, claude] = [stage.google.requests.length, stage.anthropic.requests.length];
  const answer = ask("tier:2", false);
  await until(() => stage.google.requests.length > before);
  const read = (await stage.gateway.call("GET", "/v1/agents/clerk")).body.tier_policy;
  const forbidden = { ...read, models: { allow: ["*"], deny: ["claude/*"] } };
  await stage.gateway.call("PATCH", "/v1/agents/clerk", { body: { tier_policy: forbidden } });
  gate.resolve();
  const { status, text } = await answer;
  await stage.gateway.call("PATCH", "/v1/agents/clerk", { body: { tier_policy: read } });
  expect([status, JSON.parse(text).error.code]).toEqual([403, "model_forbidden"]);
  expect(stage.anthropic.requests.length).toBe(claude);
  expect((await stage.lastEntries()).at(-1)).toMatchObject({ model: "claude/second", outcome: "failed" });
});

test("an answer with too many tool calls is abandoned", async () => {
  const parts = Array.from({ length: 129 }, () => ({ functionCall: { name: "weather", args: {} } }));
  stage.google.script("alone", { parts });
  const { text } = await ask("gemini/alone", true);
  expect(text.trimEnd().split("\n\n").at(-1)).toContain('"code":"provider_failed"');
  expect((await stage.lastEntries()).at(-1)).toMatchObject({ outcome: "failed", code: "answer_too_large" });
});

test("options that a model's library would leave out are refused, and no answer is returned", async () => {
  const usage = { input_tokens: 5, output_tokens: 4 };
  stage.anthropic.script("claude-opus-4-7", { events: [opening(usage)] });
  const body = { model: "claude/claude-opus-4-7", messages: USER, temperature: 0.5, stream: true };
  const { status, text } = await stage.post("/v1/chat/completions", body);
  const { error } = JSON.parse(text);
  expect([status, error.code, error.param]).toEqual([400, "unsupported_parameter", "temperature"]);
  const outcome = (await stage.lastEntries()).at(-1);
  expect(outcome).toMatchObject({ outcome: "failed", code: "unsupported_parameter" });
  // The provider has read it.
  expect(Number(outcome?.detail?.input_tokens)).toBeGreaterThan(0);
});
