/**
 * A conversation that begins with a translated model and continues with one whose provider supports Chat Completions.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readChatRequest } from "../../../src/dialects/chat/request.ts";
import { packSignature } from "../../../src/dialects/translation/signatures.ts";
import { type FakeGoogle, startFakeGoogle } from "../../support/fake-google.ts";
import { type DialectStage, openDialectStage } from "../support.ts";
import { USER } from "./translation-support.ts";

let google: FakeGoogle;
let stage: DialectStage;
beforeAll(async () => {
  google = startFakeGoogle("sk-google");
  const providers = `  gemini: { kind: google, base_url: "${google.url}", api_key: sk-google }`;
  stage = await openDialectStage({ providers });
});
afterAll(async () => {
  await stage.stop();
  await google.close();
});

const TOOL = { type: "function", function: { name: "weather", parameters: { type: "object" } } };

async function complete(body: object): Promise<unknown> {
  const response = await fetch(`${stage.gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${stage.clerk}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  expect(response.status).toBe(200);
  return Object(await response.json()).choices[0].message;
}

test("a signed tool call is returned to its own provider with the signature, and to another provider without it", async () => {
  const call = { functionCall: { name: "weather", args: { town: "Bern" } }, thoughtSignature: "c2lnbmVk" };
  google.script("first", { parts: [{ text: "Which weather?", thought: true }, call] });
  const answer = Object(await complete({ model: "gemini/first", messages: USER, tools: [TOOL] }));
  const [made] = answer.tool_calls;
  expect(JSON.stringify(made.extra_content)).toContain("gth1.");

  const result = { role: "tool", tool_call_id: made.id, content: "sun" };
  const messages = [...USER, answer, result];
  await complete({ model: "up/first", messages, tools: [TOOL] });
  const { id, type, function: called } = made;
  const { messages: sent } = stage.upstream.requests.at(-1)?.body ?? {};
  expect(sent as unknown).toEqual([
    ...USER,
    { ...answer, tool_calls: [{ id, type, function: called }] },
    result,
  ]);

  await complete({ model: "gemini/first", messages, tools: [TOOL] });
  const parts = google.requests.at(-1)?.body.contents[1].parts;
  expect(parts.at(-1).thoughtSignature).toBe("c2lnbmVk");
});

const packed = packSignature({ kind: "google", provider: "gemini" }, { google: { thoughtSignature: "s" } });
const cases: readonly (readonly [given: string, sent: string])[] = [
  [`"extra_content":{"google":{"thought_signature":"${packed}"}},"id":"t", "x":1.0`, `"id":"t", "x":1.0`],
  [`"id":"t" , "extra_content":{"gatehouse":{"thoughts":[]}}`, `"id":"t" `],
  [
    `"id":"t","extra_content":{"gatehouse":{},"kept":{"n":12345678901234567890}, "google":{"thought_signature":"${packed}"}}`,
    `"id":"t","extra_content":{"kept":{"n":12345678901234567890}}`,
  ],
  // Google's own signature, from its own chat completions.
  [
    `"extra_content":{"google":{"thought_signature":"c2ln"}}`,
    `"extra_content":{"google":{"thought_signature":"c2ln"}}`,
  ],
];

test.each(cases)("of a tool call with %s, everything else passes byte for byte", (given, sent) => {
  const request = (call: string, model: string) =>
    `{"n":1, "messages":[{"role":"assistant","a":1,"a":2.50,"tool_calls":[{ "id":"u" },{${call}} ]} ,{"role":"tool"}],"model":"${model}"}`;
  const text = request(given, "up/first");
  const read = readChatRequest(new TextEncoder().encode(text), JSON.parse(text));
  expect(Buffer.from(read.bytesFor("first", "up/first")).toString()).toBe(request(sent, "first"));
});
