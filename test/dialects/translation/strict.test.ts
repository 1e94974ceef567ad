/** `strict` for a JSON schema, at providers whose APIs lack it. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { type FakeGoogle, startFakeGoogle } from "../../support/fake-google.ts";
import { type DialectStage, openDialectStage } from "../support.ts";

let google: FakeGoogle;
let stage: DialectStage;
beforeAll(async () => {
  google = startFakeGoogle("sk-google");
  const providers = `  gemini: { kind: google, base_url: "${google.url}", api_key: sk-google }`;
  stage = await openDialectStage({ providers });
});
beforeEach(() => google.script("m", { parts: [{ text: '{"town":' }, { text: '"Bern"}' }] }));
afterAll(async () => {
  await stage.stop();
  await google.close();
});

const SCHEMA = {
  ...{ type: "object", properties: { town: { type: "string" } }, required: ["town"] },
  additionalProperties: false,
};

/** A request in each dialect with this format. */
const DIALECTS = {
  "/v1/chat/completions": (format: object) => ({
    messages: [{ role: "user", content: "Where?" }],
    response_format: { type: "json_schema", json_schema: { name: "place", ...format } },
  }),
  "/v1/responses": (format: object) => ({
    input: "Where?",
    text: { format: { type: "json_schema", name: "place", ...format } },
  }),
} as const;
type Path = keyof typeof DIALECTS;

async function ask(path: Path, format: object, more: object = {}) {
  const response = await fetch(stage.gateway.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${stage.clerk}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "gemini/m", ...DIALECTS[path](format), ...more }),
  });
  return { status: response.status, text: await response.text() };
}

const codeOf = (text: string) => JSON.parse(text).error.code;

describe.each(Object.keys(DIALECTS) as Path[])("%s", (path) => {
  const strict = { schema: SCHEMA, strict: true };

  test("an answer that matches the schema is passed on, whole and streamed", async () => {
    const whole = await ask(path, strict);
    expect([whole.status, whole.text]).toEqual([200, expect.stringContaining("Bern")]);
    const streamed = await ask(path, strict, { stream: true });
    expect([streamed.status, streamed.text]).toEqual([200, expect.not.stringContaining("provider_failed")]);
  });

  test.each([
    ["has another shape", '{"town":7}'],
    ["is not JSON", "Bern, I think."],
    ["has more than the schema allows", '{"town":"Bern","country":"CH"}'],
  ])("an answer that %s fails, whole and streamed", async (_, text) => {
    google.script("m", { parts: [{ text }] });
    const whole = await ask(path, strict);
    expect([whole.status, codeOf(whole.text)]).toEqual([502, "provider_failed"]);
    const streamed = await ask(path, strict, { stream: true });
    expect(streamed.text).toContain("provider_failed");
    expect(streamed.text).not.toMatch(/\[DONE\]|response\.completed/);
    const [outcome] = (await stage.entries()).slice(-1);
    expect(outcome).toMatchObject({ phase: "outcome", outcome: "failed", code: "provider_failed" });
    // Without `strict`, the schema is only a request.
    expect((await ask(path, { schema: SCHEMA })).status).toBe(200);
    expect((await ask(path, { schema: SCHEMA, strict: false }, { stream: true })).text).not.toContain(
      "provider_failed",
    );
  });

  test("a text that was cut off at its maximum length is passed on as cut off", async () => {
    google.script("m", { parts: [{ text: '{"town":"Be' }], finishReason: "MAX_TOKENS" });
    const { status, text } = await ask(path, strict);
    expect([status, text]).toEqual([200, expect.stringMatching(/length|max_output_tokens/)]);
  });

  test("a schema that cannot be checked is refused by name, and nothing is sent", async () => {
    const before = google.requests.length;
    const schema = { ...SCHEMA, properties: { town: { type: "string", pattern: "^B" } } };
    const { status, text } = await ask(path, { schema, strict: true });
    expect([status, codeOf(text)]).toEqual([400, "unsupported_parameter"]);
    expect(JSON.parse(text).error.param).toEndWith(".strict");
    expect(google.requests.length).toBe(before);
    expect((await ask(path, { schema })).status).toBe(200);
  });
});

test("a provider whose API supports it is asked to be strict only if the client asks", async () => {
  const answer = '{"town":7}';
  stage.upstream.script("first", { chunks: [answer] });
  for (const [strict, sent] of [
    [true, true],
    [false, false],
    [undefined, false],
  ]) {
    const { status, text } = await ask("/v1/responses", { schema: SCHEMA, strict }, { model: "up/first" });
    // The provider, not Gatehouse, guarantees the format.
    expect([status, text]).toEqual([200, expect.stringContaining("town")]);
    const body = Object(stage.upstream.requests.at(-1)?.body);
    expect(body.response_format.json_schema.strict).toBe(sent);
  }
});
