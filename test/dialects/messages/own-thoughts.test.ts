/** A conversation that goes on with a model of Anthropic's after one of another provider. */
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
  const signature = packSignature({ kind: "google" }, { google: { thoughtSignature: "s" } });
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
  // Words that look like one are not.
  const words = { role: "user", content: "gth1. is a prefix" };
  await ask([words]);
  expect(sent()).toEqual([words]);
});
