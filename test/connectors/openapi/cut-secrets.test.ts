/** A document repeats the connector's secret where its texts are cut. No part of it may show. */
import { expect, test } from "bun:test";
import type { JsonObject } from "../../../src/agents/index.ts";
import { documentOf, listOf, refusal } from "./api.ts";

const SECRET = "Wn7-pQ4_zX9-kL2_vB6-mT1_hJ8-cR5_yD3-gF0_sA";

/** Whether a text shows more of the secret than chance could explain. */
function tells(text: string): boolean {
  for (let at = 0; at + 6 <= SECRET.length; at++) if (text.includes(SECRET.slice(at, at + 6))) return true;
  return false;
}

/** A text that contains the secret, placed so that a cut after this many characters falls into its middle. */
const over = (characters: number) => `${".".repeat(characters - 30)}${SECRET}${".".repeat(300)}`;
const body = (schema: JsonObject) => ({ requestBody: { content: { "application/json": { schema } } } });
const parameter = (fields: JsonObject) => ({ parameters: [{ name: "a", in: "query", ...fields }] });

test.each<readonly [what: string, operation: JsonObject]>([
  ["an operation's description", { description: over(4_000) }],
  ["an operation's summary", { summary: over(200) }],
  ["an argument's description", parameter({ description: over(4_000), schema: { type: "string" } })],
  ["a schema's description", body({ description: over(4_000) })],
  ["a schema's pattern", body({ pattern: over(200) })],
])("in %s", async (_, operation) => {
  const tools = await listOf(documentOf(operation, "/things", "post"), { secrets: [SECRET] });
  const text = JSON.stringify(tools);
  expect(text).toContain("......");
  expect(tells(text)).toBe(false);
});

test.each<readonly [what: string, operation: JsonObject]>([
  ["a reference that leads nowhere", body({ $ref: `#/${over(199)}` })],
  ["a parameter's place", parameter({ in: over(200) })],
  ["a parameter's style", parameter({ style: over(200) })],
])("in the refusal of %s", async (_, operation) => {
  const { message } = await refusal(listOf(documentOf(operation, "/things", "post"), { secrets: [SECRET] }));
  expect(message).toContain("....…");
  expect(tells(message)).toBe(false);
});

test("in a list of many quotations, each is checked", async () => {
  const types = Object.fromEntries([1, 2, 3].map((n) => [`${n}${over(199)}`, {}]));
  const { message } = await refusal(
    listOf(documentOf({ requestBody: { required: true, content: types } }, "/things", "post"), {
      secrets: [SECRET],
    }),
  );
  expect(message.split("…").length).toBeGreaterThan(3);
  expect(tells(message)).toBe(false);
});
