/**
 * Names that clients make up: each is called as requested, and none stays in metrics, statistics or others'
 * reservations.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type DialectStage, openDialectStage } from "./support.ts";

let stage: DialectStage;
beforeAll(async () => {
  stage = await openDialectStage();
});
afterAll(() => stage.stop());

async function complete(model: string, { token = stage.clerk, stream = false } = {}) {
  return stage.gateway.call("POST", "/v1/chat/completions", {
    token,
    body: { model, stream, messages: [{ role: "user", content: "Good morning" }] },
  });
}

async function metrics(): Promise<string> {
  const response = await fetch(`${stage.gateway.url}/metrics`, {
    headers: { authorization: `Bearer ${stage.gateway.admin}` },
  });
  return response.text();
}

test("models in no tier are counted under one name for their provider", async () => {
  for (let made = 0; made < 30; made++) await complete(`up/made-up-${made}`);
  await complete("up/first");
  const series = (await metrics()).match(/^gatehouse_model_calls_total\{.*\}/gm) ?? [];
  const models = new Set(series.map((line) => /model="([^"]*)"/.exec(line)?.[1]));
  expect([...models].sort()).toEqual(["up/(other)", "up/first"]);
  const { body } = await stage.gateway.call("GET", "/v1/usage");
  expect(JSON.stringify(body)).not.toContain("made-up");
  // The ledger has each by its own name.
  expect((await stage.entries()).filter(({ model }) => model?.startsWith("up/made-up-"))).toHaveLength(60);
});

test("a secret is not accepted as a model's name", async () => {
  const secret = await stage.gateway.token({ agent: "clerk" });
  const { status, body } = await complete(`up/${secret}`);
  expect([status, body.error.code]).toEqual([404, "model_not_found"]);
  const entries = await stage.gateway.call("GET", "/v1/ledger?limit=200");
  expect(JSON.stringify(entries.body)).not.toContain(secret);
});

test("a stream that never began counts as a request, and a stream that began does not", async () => {
  // Few enough that none comes back during the test.
  const few = await openDialectStage({ settings: "limits: { requests_per_minute: 12 }\n" });
  few.upstream.script("missing", { status: 404 });
  const send = async (model: string, stream: boolean) => {
    const response = await fetch(`${few.gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${few.clerk}`, "content-type": "application/json" },
      body: JSON.stringify({ model, stream, messages: [] }),
    });
    await response.text();
    return Number(response.headers.get("ratelimit")?.match(/r=(\d+)/)?.[1]);
  };
  const before = await send("up/first", false);
  await send("up/first", true);
  expect(await send("up/first", false)).toBe(before - 1);
  await send("up/missing", true);
  expect(await send("up/first", false)).toBe(before - 3);
  await few.stop();
});

test("usage in one workspace does not reveal anything to another", async () => {
  const other = await stage.gateway.workspace("other");
  stage.upstream.script("priced", { chunks: ["x"], usage: { prompt_tokens: 5, completion_tokens: 12_345 } });
  const body = (name: string) => ({ name, scopes: ["models:call"] });
  const own = await stage.gateway.token(body("own"));
  const { secret } = (await stage.gateway.call("POST", "/v1/tokens", { token: other, body: body("theirs") }))
    .body;
  const reserved = async (token: string, reader: string) => {
    const { headers, status } = await complete("up/priced", { token });
    expect(status).toBe(200);
    const seq = headers.get("gatehouse-ledger");
    const entry = await stage.gateway.call("GET", `/v1/ledger/${seq}`, { token: reader });
    return entry.body.detail.reserved;
  };
  const first = await reserved(own, stage.gateway.admin);
  await reserved(secret, other);
  for (let call = 0; call < 3; call++) await reserved(secret, other);
  const { admin } = stage.gateway;
  expect(await reserved(await stage.gateway.token(body("own again")), admin)).toBeGreaterThan(first);
  const third = await stage.gateway.workspace("third");
  const late = (await stage.gateway.call("POST", "/v1/tokens", { token: third, body: body("late") })).body
    .secret;
  expect(await reserved(late, third)).toBe(first);
});
