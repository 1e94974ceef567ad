import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { formsOf } from "../../../src/base/masking/forms.ts";
import { createMask } from "../../../src/base/masking/mask.ts";

const SECRET = 's3cr&t/+"pä ss~';

describe("a secret is removed", () => {
  const mask = createMask([SECRET]);
  test.each([
    ["as it is", SECRET],
    ["percent-encoded", encodeURIComponent(SECRET)],
    [
      "percent-encoded in small letters",
      encodeURIComponent(SECRET).replace(/%../g, (code) => code.toLowerCase()),
    ],
    ["as in a query or a form", new URLSearchParams({ a: SECRET }).toString().slice(2)],
    ["as in JSON", JSON.stringify(SECRET).slice(1, -1)],
    ["as in JSON with slashes escaped", JSON.stringify(SECRET).slice(1, -1).replace("/", "\\/")],
    ["as in ASCII-only JSON", JSON.stringify(SECRET).slice(1, -1).replace("ä", "\\u00e4")],
    ["as in HTML", SECRET.replace("&", "&amp;").replace('"', "&quot;")],
    ["in base64", Buffer.from(SECRET).toString("base64")],
    ["in base64 without padding", Buffer.from(SECRET).toString("base64").replace(/=+$/, "")],
    ["in base64url", Buffer.from(SECRET).toString("base64url")],
    ["in hexadecimal", Buffer.from(SECRET).toString("hex")],
    ["in hexadecimal in capitals", Buffer.from(SECRET).toString("hex").toUpperCase()],
  ])("%s", (_, form) => {
    expect(mask.text(`before ${form} after`)).toBe("before [redacted] after");
    expect(mask.text(`${form}${form}`)).toBe("[redacted]");
  });

  test.each(["u", "us", "use", "user"])("in base64 of a password after the name %j", (user) => {
    const encoded = Buffer.from(`${user}:hunter2-hunter2`).toString("base64");
    const shown = createMask(["hunter2-hunter2"]).text(`Basic ${encoded}.`);
    expect(shown).toContain("[redacted]");
    expect(Buffer.from(shown.replace(/[^A-Za-z0-9+/]/g, "A"), "base64").toString("latin1")).not.toContain(
      "unter",
    );
  });
});

describe("no remainder of several secrets shows", () => {
  test.each([
    ["one inside of another", ["secret", "my-secret-key"], "x my-secret-key x", "x [redacted] x"],
    ["one at another's end", ["abcdef", "defghi"], "x abcdefghi x", "x [redacted] x"],
    ["one next to another", ["abcdef", "ghijkl"], "x abcdefghijkl x", "x [redacted] x"],
    ["one that overlaps itself", ["abcabc"], "x abcabcabcab x", "x [redacted]ab x"],
    ["one that overlaps itself in two ways", ["aabaa"], "x aabaaabaabaa x", "x [redacted] x"],
    ["one apart from another", ["abcdef", "ghijkl"], "abcdef ghijkl", "[redacted] [redacted]"],
  ])("%s", (_, secrets, text, expected) => {
    expect(createMask(secrets).text(text)).toBe(expected);
  });

  test("the same as marking every place of every form", () => {
    const piece = fc.stringMatching(/^[ab]{1,8}$/);
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 4 }), fc.stringMatching(/^[ab]{0,60}$/), (secrets, text) => {
        const marked = Array.from(text, () => false);
        for (const form of secrets.flatMap(formsOf)) {
          for (let at = 0; at < text.length; at++)
            if (text.startsWith(form, at)) marked.fill(true, at, at + form.length);
        }
        const slow = Array.from(text, (character, at) => (marked[at] ? "*" : character)).join("");
        expect(createMask(secrets).text(text)).toBe(slow.replace(/\*+/g, "[redacted]"));
      }),
      { numRuns: 500 },
    );
  });

  test("in any text around any secret", () => {
    const secret = fc.string({ unit: "binary", minLength: 6, maxLength: 30 });
    const plain = fc.stringMatching(/^[0-9 ]{0,20}$/);
    fc.assert(
      fc.property(secret, plain, plain, (text, before, after) => {
        fc.pre(!formsOf(text).some((form) => "[redacted]".includes(form)));
        const { text: mask } = createMask([text]);
        for (const form of formsOf(text)) expect(mask(`${before}${form}${after}`)).not.toContain(form);
      }),
    );
  });
});

describe("json", () => {
  const mask = createMask(["token-123", "12345678"]);

  test("an object without a secret stays the same object", () => {
    const value = { a: [1, "b", null, true, { c: 1.5 }], "": [] };
    expect(mask.json(value)).toBe(value);
    expect(createMask([]).json(value)).toBe(value);
    expect(mask.json("plain")).toBe("plain");
  });

  test("texts, keys and numbers at any depth", () => {
    const value = {
      a: ["x token-123", { "token-123": 1, deep: [[["token-123"]]] }],
      port: 12345678,
      other: 1234,
    };
    const before = structuredClone(value);
    expect(mask.json<unknown>(value)).toEqual({
      a: ["x [redacted]", { "[redacted]": 1, deep: [[["[redacted]"]]] }],
      port: "[redacted]",
      other: 1234,
    });
    expect(value).toEqual(before);
  });

  test("keys that become equal when masked are all kept", () => {
    const value = { "token-123": 1, dG9rZW4tMTIz: 2, "[redacted]": 3, "[redacted] 2": 4 };
    expect(Object.values(mask.json(value))).toEqual([1, 2, 3, 4]);
  });

  test("a key with a meaning for objects", () => {
    const value: unknown = JSON.parse('{"__proto__":{"x":"token-123"},"constructor":"token-123"}');
    expect(JSON.stringify(mask.json(value))).toBe(
      '{"__proto__":{"x":"[redacted]"},"constructor":"[redacted]"}',
    );
  });

  test("nesting that would use up the stack", () => {
    let value: unknown = "token-123";
    for (let depth = 0; depth < 300_000; depth++) value = depth % 2 ? [value] : { a: value };
    let shown = mask.json(value);
    let depth = 0;
    for (; typeof shown === "object" && shown !== null; depth++) shown = Object.values(shown)[0];
    expect([depth, shown]).toEqual([300_000, "[redacted]"]);
  });

  test("any JSON: its text is masked, its form stays", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (given) => {
        expect(mask.json(given)).toBe(given);
        const masked = mask.json({ given, secret: "token-123" });
        expect(masked).toEqual({ given, secret: "[redacted]" });
      }),
    );
  });
});

test("nothing is masked without a secret, or with an empty one", () => {
  expect(createMask([]).text("text")).toBe("text");
  expect(createMask([""]).text("text")).toBe("text");
});

describe("a megabyte with 20 secrets causes no quadratic work, which would exceed a test's time", () => {
  const SIZE = 1_000_000;
  const random = Array.from({ length: 20 }, (_, index) =>
    Buffer.from(`secret-${index}/+ "&`).toString("base64").repeat(2),
  );
  const letters = "a".repeat(4000);
  const ordinary = "The quick brown fox jumps. ".repeat(SIZE / 27);
  const twenty = Array.from({ length: 20 }, (_, index) => "ab".repeat(100 + index));

  test.each([
    ["ordinary text", random, ordinary, ordinary.length],
    [
      "secrets everywhere",
      random,
      `${random.join("\n")}\n`.repeat(SIZE / 1000),
      random.length * (SIZE / 1000) * 11,
    ],
    ["a secret's beginning, repeated", [`${letters}b`], "a".repeat(SIZE), SIZE],
    ["a secret that overlaps itself everywhere", [letters], "a".repeat(SIZE), "[redacted]".length],
    ["secrets that overlap each other", twenty, "ab".repeat(SIZE / 2), "[redacted]".length],
  ])("%s", (_, secrets, text, length) => {
    const mask = createMask(secrets);
    expect(mask.text(text)).toHaveLength(length);
    expect(mask.json({ text }).text).toHaveLength(length);
  });

  test("nor do 8,000 secrets against a megabyte, or against 45,000 texts: they cost no more than one", () => {
    const mask = createMask(Array.from({ length: 8_000 }, (_, index) => `secret-${index}`));
    expect(mask.text(ordinary)).toBe(ordinary);
    const texts = Array.from({ length: 45_000 }, (_, index) =>
      index === 7 ? "a secret-7999" : "zzzzzzzzzz",
    );
    expect(mask.json(texts)[7]).toBe("a [redacted]");
    for (let cuts = 0; cuts < 20; cuts++) expect(mask.text("a secret-79", { end: true })).toBe("a ");
  });

  test("nor does a cut in secrets that repeat themselves", () => {
    const mask = createMask([`${"a".repeat(500_000)}b`]);
    expect(mask.text("a".repeat(SIZE), { end: true })).toBe("a".repeat(SIZE - 500_000));
    expect(mask.text(`${"a".repeat(SIZE)}b`, { start: true })).toHaveLength(
      SIZE - 500_000 + "[redacted]".length,
    );
  });

  test("nor do keys that all become equal when masked", () => {
    const forms = ["token-123", "dG9rZW4tMTIz"];
    const keys = Array.from({ length: 60_000 }, (_, index) =>
      Array.from({ length: 16 }, (_, bit) => forms[(index >> bit) & 1]).join(""),
    );
    const masked = createMask(["token-123"]).json(Object.fromEntries(keys.map((key) => [key, 1])));
    expect(Object.keys(masked)).toHaveLength(keys.length);
  });
});

describe("a text that was cut before it arrived", () => {
  const mask = createMask(["hunter22-long", "hunter22"]);
  test.each([
    ["at its end, in a secret", "key hunter2", { end: true }, "key "],
    ["at its end, in a secret that begins with another", "key hunter22-lo", { end: true }, "key "],
    ["at its end, after a secret that another begins with", "key hunter22", { end: true }, "key "],
    ["at its end, after a secret", "key hunter22-long", { end: true }, "key [redacted]"],
    ["at its start, in a secret", "2-long key", { start: true }, " key"],
    ["at its start, before a secret", "hunter22 key", { start: true }, "[redacted] key"],
    ["at both ends, outside any secret", "key", { start: true, end: true }, "key"],
    ["at both ends, in secrets", "ong key hunt", { start: true, end: true }, " key "],
    ["at both ends, in one secret", "hunter22-lon", { start: true, end: true }, ""],
    ["nowhere", "2-long hunter2", {}, "2-long hunter2"],
    ["in base64 of a secret", `key ${btoa("hunter22-long").slice(0, 9)}`, { end: true }, "key "],
  ])("%s", (_, text, cuts, expected) => {
    expect(mask.text(text, cuts)).toBe(expected);
  });

  test("shows no part of any form of a secret, wherever it was cut", () => {
    const secret = fc.string({ unit: "binary", minLength: 6, maxLength: 30 });
    const around = fc.stringMatching(/^[ .]{1,20}$/);
    fc.assert(
      fc.property(secret, around, fc.nat(), (text, other, at) => {
        const forms = formsOf(text);
        fc.pre(!forms.some((form) => "[redacted]".includes(form)) && !/[ .]/.test(forms.join("")));
        const { text: masked } = createMask([text]);
        for (const form of forms) {
          const cut = 1 + (at % (form.length - 1));
          const bare = (shown: string) => shown.replaceAll("[redacted]", "").replace(/[\n\r]/g, "");
          // A shorter form that is complete in the rest is redacted; the test above covers what remains of it.
          const inner = forms.filter((each) => each !== form && form.includes(each));
          if (inner.length > 0) continue;
          expect(bare(masked(other + form.slice(0, cut), { end: true }))).toBe(other);
          expect(bare(masked(form.slice(cut) + other, { start: true }))).toBe(other);
        }
      }),
    );
  });
});
