/** Providers that fail: what the client gets, and what the ledger records. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Behaviour } from "../support/fake-model.ts";
import { until } from "../support/until.ts";
import { type DialectStage, openDialectStage } from "./support.ts";

let stage: DialectStage;
beforeAll(async () => {
  stage = await openDialectStage();
});
afterAll(() => stage.stop());

const bytes = (text: string) => [Buffer.from(text)];
const chunk = (content: string) => `data: {"choices":[{"index":0,"delta":{"content":"${content}"}}]}\n\n`;

/** @param begun called when the answer begins to arrive: what comes later is then not in the same read */
async function ask(model: string, stream: boolean, begun: () => void = () => {}) {
  const response = await fetch(`${stage.gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${stage.clerk}`, "content-type": "application/json" },
    body: JSON.stringify({ model, stream, messages: [{ role: "user", content: "hi" }] }),
  });
  let text = "";
  const decoder = new TextDecoder();
  for await (const part of response.body ?? []) {
    begun();
    text += decoder.decode(part, { stream: true });
  }
  return { status: response.status, headers: response.headers, text };
}

/** The entries of the last request. */
async function lastEntries() {
  const all = await stage.entries();
  return all.filter((entry) => entry.request_id === all.at(-1)?.request_id);
}

type Fault = [name: string, behaviour: Behaviour, status: number, code: string, reason: string];
const BEFORE: Fault[] = [
  ["answers 500", { status: 500 }, 502, "provider_failed", "http_500"],
  ["refuses our key", { status: 401 }, 502, "provider_failed", "http_401"],
  ["is busy", { status: 429, headers: { "retry-after": "7" } }, 429, "provider_busy", "rate_limited"],
  ["answers 504", { status: 504 }, 504, "provider_timeout", "timeout"],
  ["refuses the request", { status: 400 }, 400, "provider_refused", "http_400"],
];

describe("a provider that", () => {
  for (const stream of [false, true]) {
    test.each(BEFORE)(
      `%s, asked for ${stream ? "a stream" : "a whole answer"}`,
      async (_, behaviour, status, code, reason) => {
        stage.upstream.script("alone", behaviour);
        const answer = await ask("up/alone", stream);
        expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([status, code]);
        expect(answer.headers.get("retry-after")).toBe(behaviour.headers?.["retry-after"] ?? null);
        expect((await lastEntries()).map(({ phase, outcome, code: said }) => [phase, outcome, said])).toEqual(
          [
            ["intent", "allowed", null],
            ["outcome", "failed", reason],
          ],
        );
      },
    );
  }

  const IN_THE_MIDDLE: [name: string, behaviour: Behaviour, reason: string][] = [
    ["cuts the connection", { chunks: ["one", "two", "three"], cutAfter: 2, delayMs: 1 }, "connection"],
    ["stops without an end", { chunks: ["one", "two"], noFinish: true }, "cut"],
    [
      "reports an error",
      { rawBytes: [...bytes(chunk("one")), ...bytes('data: {"error":{"message":"boom"}}\n\n')] },
      "error",
    ],
    [
      "breaks off inside an event",
      { rawBytes: [...bytes(chunk("one")), ...bytes('data: {"choices":[{"ind')] },
      "cut",
    ],
  ];
  test.each(IN_THE_MIDDLE)("%s in the middle of a stream", async (_, behaviour, reason) => {
    const begun = Promise.withResolvers<void>();
    stage.upstream.script("alone", { ...behaviour, gate: begun.promise });
    const { status, text } = await ask("up/alone", true, begun.resolve);
    expect(status).toBe(200);
    expect(text).toContain("one");
    const last = text.trimEnd().split("\n\n").at(-1) ?? "";
    expect(JSON.parse(last.replace("data: ", "")).error.code).toBe("provider_failed");
    expect(text).not.toContain("[DONE]");
    expect(text).not.toContain("boom");
    expect((await lastEntries()).at(-1)).toMatchObject({ outcome: "failed", code: reason });
  });

  test.each<[string, Behaviour]>([
    ["answers 500", { status: 500 }],
    ["is busy", { status: 429 }],
    ["reports an error at once", { rawBytes: bytes('data: {"error":{"message":"boom"}}\n\n') }],
    ["sends nothing", { rawBytes: bytes("") }],
  ])("%s is followed by the tier's next model", async (_, behaviour) => {
    stage.upstream.script("first", behaviour);
    stage.upstream.script("second", { chunks: ["from the second"] });
    const { status, text, headers } = await ask("tier:1", true);
    expect([status, headers.get("gatehouse-model")]).toEqual([200, "up/second"]);
    expect(text).toContain("from the second");
    const entries = await lastEntries();
    expect(entries.map(({ phase, model, outcome }) => [phase, model, outcome])).toEqual([
      ["intent", "up/first", "allowed"],
      ["outcome", "up/first", "failed"],
      ["intent", "up/second", "allowed"],
      ["outcome", "up/second", "succeeded"],
    ]);
    expect(headers.get("gatehouse-ledger")).toBe(String(entries[2]?.seq));
    expect(entries[2]?.detail).toMatchObject({ attempt: 2 });
  });
});

test.each<[string, () => Buffer]>([
  [
    "with an event that is too large",
    () => Buffer.concat([Buffer.from("data: "), Buffer.alloc(4_400_000, "a")]),
  ],
  ["with an error", () => Buffer.from('data: {"error":{"message":"boom"}}\n\n')],
])("a stream that begins %s and then falls silent ends at once", async (_, first) => {
  stage.upstream.script("alone", { rawBytes: [first()], delayMs: 3_600_000 });
  const { status, text } = await ask("up/alone", true);
  expect([status, JSON.parse(text).error.code]).toEqual([502, "provider_failed"]);
  await until(() => stage.upstream.requests.at(-1)?.aborted === true);
  expect((await lastEntries()).at(-1)).toMatchObject({ phase: "outcome", outcome: "failed" });
});

test("a request that the provider refuses is not retried with another model", async () => {
  stage.upstream.script("first", { status: 400 });
  stage.upstream.script("second", { chunks: ["never"] });
  const { status, text } = await ask("tier:1", false);
  expect([status, JSON.parse(text).error.code]).toEqual([400, "provider_refused"]);
  expect(JSON.parse(text).error.message).toContain("The script answers 400.");
});

test("a client that leaves ends the request to the provider at once, and is charged for the usage so far", async () => {
  stage.upstream.script("priced", { chunks: ["one ", "two ", "three"], hangAfter: 2 });
  const leave = new AbortController();
  const response = await fetch(`${stage.gateway.url}/v1/chat/completions`, {
    method: "POST",
    signal: leave.signal,
    headers: { authorization: `Bearer ${stage.gateway.admin}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: "up/priced",
      stream: true,
      messages: [{ role: "user", content: "hi there" }],
    }),
  });
  await response.body?.getReader().read();
  leave.abort();
  await until(() => stage.upstream.requests.at(-1)?.aborted === true);
  await until(async () => (await stage.entries()).at(-1)?.phase === "outcome");
  const entry = (await stage.entries()).at(-1);
  expect(entry).toMatchObject({ outcome: "cancelled", detail: { usage: "estimated" } });
  expect(entry?.credits ?? 0).toBeGreaterThan(0);
});

test("a stop ends a pending whole answer with 409, and its request to the provider", async () => {
  stage.upstream.script("alone", { hang: true });
  const asked = stage.upstream.requests.length;
  const answer = ask("up/alone", false);
  await until(() => stage.upstream.requests.length > asked);
  const person = await stage.gateway.token({ scopes: ["admin"], person: "Ann Example", role: "overseer" });
  await stage.gateway.call("POST", "/v1/agents/clerk/stop", { token: person });
  const { status, headers, text } = await answer;
  expect([status, headers.get("gatehouse-code")]).toEqual([409, "agent_stopped"]);
  expect(JSON.parse(text).error.code).toBe("agent_stopped");
  await until(() => stage.upstream.requests.at(-1)?.aborted === true);
  expect((await lastEntries()).at(-1)).toMatchObject({ outcome: "cancelled", code: "agent_stopped" });
  await stage.gateway.call("POST", "/v1/agents/clerk/resume", { token: person });
});

test.each([
  ["an agent", "/v1/agents/clerk/stop", "/v1/agents/clerk/resume"],
  ["a workspace", "/v1/workspace/stop", "/v1/workspace/resume"],
])(
  "the stop of %s ends its streams with an error event, and refuses further calls",
  async (_, stop, resume) => {
    stage.upstream.script("alone", { chunks: ["one ", "two "], hangAfter: 1 });
    const response = await fetch(`${stage.gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${stage.clerk}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "up/alone", stream: true, messages: [] }),
    });
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = (await reader?.read())?.value ?? "";
    const person = await stage.gateway.token({ scopes: ["admin"], person: "Ann Example", role: "overseer" });
    expect((await stage.gateway.call("POST", stop, { token: person })).status).toBe(200);
    for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) text += part.value;
    expect(text.trimEnd().split("\n\n").at(-1)).toContain('"code":"agent_stopped"');
    await until(() => stage.upstream.requests.at(-1)?.aborted === true);
    expect((await stage.entries()).at(-1)).toMatchObject({ outcome: "cancelled", code: "agent_stopped" });
    const refused = await ask("up/alone", false);
    expect([refused.status, refused.headers.get("x-should-retry")]).toEqual([409, "false"]);
    expect((await stage.gateway.call("POST", resume, { token: person })).status).toBe(200);
  },
);
