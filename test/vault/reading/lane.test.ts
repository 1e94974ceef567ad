/** Documents read in the server's own process are short, and produce no text longer than themselves. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { chunkDocument } from "../../../src/vault/prepare/chunk.ts";
import { readText, UnreadableDocument } from "../../../src/vault/read/read.ts";
import { isLight, timeAllowed } from "../../../src/vault/reading/reading.ts";
import { MIB, textRequest } from "./support.ts";

const LIGHT = ["text/plain", "text/markdown", "text/html", "application/xhtml+xml"];
const light = (length: number, type: string) => isLight(textRequest("x".repeat(length), type));

describe("a document is read in a separate process", () => {
  test.each([
    "application/pdf",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "text/csv",
    "application/json",
    "Application/JSON; charset=utf-8",
  ])("whatever its size: %s", (type) => {
    expect(light(1, type)).toBe(false);
  });

  test.each(LIGHT)("beyond 262,144 characters: %s", (type) => {
    expect([light(262_144, type), light(262_145, type), light(1, `${type.toUpperCase()};charset=x`)]).toEqual(
      [true, false, true],
    );
  });

  test("even if it was sent in base64", () => {
    const content = { kind: "base64", data: "x".repeat(262_145), type: "text/plain" } as const;
    expect(isLight({ content })).toBe(false);
    expect(isLight({ content: { ...content, data: "eA==" } })).toBe(true);
  });
});

describe("other documents do not grow", () => {
  const piece = fc.oneof(
    fc.constantFrom("<li>", "<td>", "<tr>", "<table>", "</td>", "<h1>", "<br>", "<p>", "<pre>", "</pre>"),
    fc.constantFrom(
      '<img alt="a">',
      "&amp;",
      "&ngE;",
      "&#x1f600;",
      "a",
      " ",
      "\n",
      "‹",
      "# a\n",
      "- b\n",
      "|a|b|\n",
    ),
    fc.string({ maxLength: 4 }),
  );
  const text = fc.array(piece, { maxLength: 60 }).map((pieces) => pieces.join(""));

  test.each(LIGHT)("%s", async (type) => {
    await fc.assert(
      fc.asyncProperty(text, async (source) => {
        const read = await readText(source, type).catch((error: unknown) => {
          if (error instanceof UnreadableDocument) return null;
          throw error;
        });
        if (read === null) return;
        expect(read.text.length).toBeLessThanOrEqual(source.length);
        expect(read.blocks.length).toBeLessThanOrEqual(source.length);
        const passages = chunkDocument(read);
        expect(passages.length).toBeLessThanOrEqual(source.length);
      }),
      { numRuns: 300 },
    );
  });
});

test("the time for a document depends on its size, up to the operator's limit", () => {
  const time = (length: number, most = 120_000) => timeAllowed(textRequest("x".repeat(length)), most);
  expect([time(1), time(MIB), time(10 * MIB), time(40 * MIB), time(MIB, 5_000)]).toEqual([
    24_000, 24_000, 60_000, 120_000, 5_000,
  ]);
});
