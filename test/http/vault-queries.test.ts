import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { AGENT_SCOPES, MODES, search, write } from "../support/vault.ts";

let gateway: TestGateway;
let token: string;
const INSIDE: readonly string[] = [
  "Refunds are paid within fourteen days (see NEAR and NOT).",
  "退款在十四天内支付。返金は十四日以内に支払われます。",
  "ההחזר משולם תוך ארבעה עשר ימים",
  "Café 😀 résumé 42 select drop table documents",
];

beforeAll(async () => {
  gateway = await startGateway();
  await gateway.agent("agent", { memory_scope: "support" });
  token = await gateway.token({ agent: "agent", scopes: AGENT_SCOPES });
  for (const text of INSIDE) {
    await write(gateway, { title: "Inside", text });
    await write(gateway, { title: "Outside", text, scope: "supportx" });
  }
});
afterAll(() => gateway.stop());

async function expectHarmless(query: string): Promise<void> {
  for (const mode of MODES) {
    const { results } = await search(gateway, { query, mode, explain: true, top_k: 100 }, token);
    expect(results.filter(({ title }) => title !== "Inside")).toEqual([]);
    for (const { score } of results) expect(Number.isFinite(score)).toBe(true);
  }
}

describe("no query fails, and none reaches outside the boundary", () => {
  test.each([
    ["one quote", '"'],
    ["quotes that do not close", '"refund'],
    ["a phrase", '"refunds are paid"'],
    ["an apostrophe", "'"],
    ["NEAR", "NEAR("],
    ["NEAR with a distance", "NEAR(refund paid, 5)"],
    ["an asterisk", "*"],
    ["a prefix", "refu*"],
    ["operators alone", "AND OR NOT"],
    ["operators between words", "refund AND NOT paid OR days"],
    ["brackets", "((((refund"],
    ["a column", "title:refund scope:supportx"],
    ["a caret", "^refund"],
    ["a minus", "-refund"],
    ["a plus", "refund + paid"],
    ["JSON", '{"$ne":null}'],
    ["SQL", "'; DROP TABLE vault_documents; --"],
    ["SQL's union", "x' UNION SELECT text FROM vault_pages --"],
    ["a pattern", "(a+)+$"],
    ["a template", "{{7*7}} <%= 7 %>"],
    ["HTML", "<script>alert(1)</script>"],
    ["a path", "../../etc/passwd"],
    ["punctuation alone", "?!.,;:-–—…"],
    ["a space", " "],
    ["white space of all kinds", "\t\n\r\v\f\u00a0\u2003\u3000"],
    ["control characters", "\u0001\u0002\u001f\u007f\u0085"],
    ["NUL", "\0"],
    ["NUL between words", "refund\0paid"],
    ["only zero-width characters", "\u200b\u200c\u200d\ufeff"],
    ["emoji", "😀"],
    ["emoji of several parts", "👩‍👩‍👧‍👦🏳️‍🌈👍🏽"],
    ["a flag", "🇨🇭"],
    ["right-to-left text", "ההחזר משולם"],
    ["turned around", "\u202edraefu\u202c"],
    ["Arabic with marks", "مُسْتَرَدّ"],
    ["Chinese", "退款"],
    ["Japanese", "返金は"],
    ["Thai", "การคืนเงิน"],
    ["Devanagari", "धनवापसी"],
    ["a combining mark alone", "\u0301"],
    ["a letter under many marks", `a${"\u0301".repeat(5_000)}`],
    ["a ligature of eighteen letters", "\ufdfa"],
    ["mathematical letters", "𝐫𝐞𝐟𝐮𝐧𝐝"],
    ["a lone number", "42"],
    ["a long number", "9".repeat(400)],
    ["numbers as words", "1e308 -0 NaN Infinity 0x10"],
    ["names that every object has", "__proto__ constructor toString hasOwnProperty"],
    ["only stop words", "the of and to be or not to be"],
    ["one letter", "x"],
    ["U+FFFF", "\uffff"],
    ["the last code point", "\u{10ffff}"],
    ["10,000 characters", "refund ".repeat(1_429).slice(0, 10_000)],
    ["100,000 characters", "refunds are paid ".repeat(6_000).slice(0, 100_000)],
    ["100,000 characters without a space", "a".repeat(100_000)],
    ["100,000 quotes", '"'.repeat(100_000)],
    ["100,000 brackets", "(".repeat(100_000)],
    ["50,000 words", "a b ".repeat(25_000)],
    ["16,000 different words", Array.from({ length: 16_000 }, (_, at) => at.toString(26)).join(" ")],
    ["100,000 Chinese characters", "退".repeat(100_000)],
    ["100,000 ligatures of eighteen letters", "\ufdfa".repeat(100_000)],
  ])("%s", async (_, query) => {
    await expectHarmless(query);
  });

  test("whatever a generator produces", async () => {
    const text = fc.oneof(
      fc.string({ unit: "binary", minLength: 1, maxLength: 200 }),
      fc.string({ unit: "grapheme-composite", minLength: 1, maxLength: 60 }),
      fc
        .array(
          fc.constantFrom("refund", "NEAR", '"', "*", "AND", "(", ")", ":", "-", "\0", "退款", "😀", "'"),
          {
            minLength: 1,
            maxLength: 20,
          },
        )
        .map((parts) => parts.join(" ")),
    );
    await fc.assert(fc.asyncProperty(text, expectHarmless), { numRuns: 150 });
  }, 60_000);
});

test("words between other characters are found", async () => {
  const found = async (query: string) => {
    const { results } = await search(gateway, { query, mode: "keyword" }, token);
    return results.map(({ text }) => INSIDE.indexOf(text));
  };
  expect(await found('"refund* NEAR(')).toEqual([0]);
  expect(await found("REFUNDS")).toEqual([0]);
  expect(await found("退款")).toEqual([1]);
  expect(await found("十四日以内")).toContain(1);
  expect(await found("ההחזר")).toEqual([2]);
  expect(await found("cafe resume")).toEqual([3]);
  expect(await found("ＣＡＦＥ")).toEqual([3]);
  expect(await found("42")).toEqual([3]);
  expect(await found("nothing of the kind")).toEqual([]);
});

test("half of a surrogate pair is not text", async () => {
  const raw = '{"query":"\\ud800"}';
  const answer = await gateway.call("POST", "/v1/vault/search", { token, raw });
  expect([answer.status, answer.body.code]).toEqual([400, "invalid_json"]);
});
