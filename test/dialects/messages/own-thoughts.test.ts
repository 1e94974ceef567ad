/** A conversation that continues with one of Anthropic's models after another provider's model. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import { packSignature } from "../../../src/dialects/translation/signatures.ts";
import { openTranslationStage, type TranslationStage } from "../chat/translation-support.ts";
import { message } from "../messages-support.ts";
import { USER, WEATHER } from "./translation-support.ts";

let stage: TranslationStage;
beforeAll(async () => {
  stage = await openTranslationStage();
});
afterAll(() => stage.stop());

test("thoughts signed by another provider are not sent to Anthropic, which would refuse the request", async () => {
  const client = new Anthropic({ apiKey: stage.clerk, baseURL: stage.gateway.url, maxRetries: 0 });
  const asked = {
    ...{ model: "tier:2", max_tokens: 2_000, messages: USER, tools: [WEATHER] },
    thinking: { type: "enabled" as const, budget_tokens: 1_024 },
  };
  const call = { functionCall: { name: "weather", args: { town: "Bern" } }, thoughtSignature: "c2lnbmVk" };
  stage.google.script("first", { parts: [{ text: "Which weather?", thought: true }, call] });
  const first = await client.messages.create(asked);
  expect(first.content.map(({ type }) => type)).toEqual(["thinking", "thinking", "tool_use"]);

  stage.google.script("first", { status: 500 });
  const text = { type: "text", text: "Sun." };
  stage.anthropic.script("second", { message: message([text], { input_tokens: 1, output_tokens: 1 }) });
  const [id] = first.content.flatMap((block) => (block.type === "tool_use" ? [block.id] : []));
  const result = { type: "tool_result" as const, tool_use_id: id ?? "", content: "sun" };
  const second = await client.messages.create({
    ...asked,
    messages: [...USER, { role: "assistant", content: first.content }, { role: "user", content: [result] }],
  });
  expect(second).toMatchObject({ model: "claude-upstream", content: [text] });
  const sent = JSON.parse(stage.anthropic.requests.at(-1)?.bytes.toString() ?? "");
  const [, ...calls] = first.content.slice(1);
  expect(sent).toEqual({
    ...{ ...asked, model: "second" },
    messages: [...USER, { role: "assistant", content: calls }, { role: "user", content: [result] }],
  });
});

test("Anthropic's own thoughts are passed on, and a message with only foreign thoughts is left out", async () => {
  const own = { type: "thinking", thinking: "Hm.", signature: "EqQBCkYIBRgC" };
  const signature = packSignature(
    { kind: "google", provider: "gemini" },
    { google: { thoughtSignature: "s" } },
  );
  const foreign = { type: "thinking", thinking: "", signature };
  const assistant = (...content: object[]) => ({ role: "assistant", content });
  const ask = (messages: readonly object[]) =>
    stage.post("/v1/messages", { model: "claude/second", max_tokens: 9, messages });
  stage.anthropic.script("second", { message: message([], { input_tokens: 1, output_tokens: 1 }) });
  const sent = () => JSON.parse(stage.anthropic.requests.at(-1)?.bytes.toString() ?? "").messages;
  await ask([...USER, assistant(own), ...USER]);
  expect(sent()).toEqual([...USER, assistant(own), ...USER]);
  await ask([...USER, assistant(own, foreign), ...USER, assistant(foreign), ...USER]);
  expect(sent()).toEqual([...USER, assistant(own), ...USER, ...USER]);
  // Text that merely looks like a signature is kept.
  const words = { role: "user", content: "gth1. is a prefix" };
  await ask([words]);
  expect(sent()).toEqual([words]);
});

test("everything else in a request without those thoughts passes byte for byte", async () => {
  const foreign = (thinking: string) =>
    JSON.stringify({
      ...{ type: "thinking", thinking },
      signature: packSignature({ kind: "google", provider: "gemini" }, { google: { thoughtSignature: "s" } }),
    });
  const tool = '{"type":"tool_use","id":"t","name":"n","input":{"big":12345678901234567890,"a":1.0,"a":2e0}}';
  const body = (thoughts: readonly [string, string, string, string], model: string) =>
    `{ "max_tokens":9, "zeta":1.0,"model":"${model}",
      "messages" : [ {"role":"user","content":"H\\u00e9"},
        ${thoughts[0]}{"role":"assistant","content":[ ${thoughts[1]}{"type":"text","text":"a\\/b"}${thoughts[2]}, ${tool}${thoughts[3]} ]},
        {"content":"ok" ,"role":"user"}], "metadata":{"user_id":"x"}, "beta":{"n":1E2,"n":0.10} }`;
  stage.anthropic.script("second", { message: message([], { input_tokens: 1, output_tokens: 1 }) });
  const post = (path: string, text: string) =>
    fetch(stage.gateway.url + path, {
      method: "POST",
      headers: { authorization: `Bearer ${stage.clerk}`, "content-type": "application/json" },
      body: text,
    });
  const thoughts = [
    `{"role":"assistant","content":[${foreign("1")}]} , `,
    `${foreign("2")},${foreign("[,{")} , `,
    `, ${foreign("3")}`,
    `,${foreign("4")}`,
  ] as const;
  for (const path of ["/v1/messages", "/v1/messages/count_tokens"]) {
    await (await post(path, body(thoughts, "claude/second"))).text();
    expect(stage.anthropic.requests.at(-1)?.bytes.toString()).toBe(body(["", "", "", ""], "second"));
  }

  const twice = `{"model":"claude/second","max_tokens":9,"messages":[],"messages":[${thoughts[0].slice(0, -3)}]}`;
  const refused = await post("/v1/messages", twice);
  expect([refused.status, refused.headers.get("gatehouse-code")]).toEqual([400, "invalid_json"]);
});
