import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { CONTENT_TYPES, MAX_TEXT } from "../../../src/vault/read/document.ts";
import { readBytes, readText, UnreadableDocument } from "../../../src/vault/read/read.ts";

const utf8 = (text: string) => new TextEncoder().encode(text);
const PDF = "application/pdf";
const DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";

async function refusal(reading: Promise<unknown>): Promise<[field: string, message: string]> {
  const error = await reading.then(
    () => new Error("was read"),
    (reason) => reason,
  );
  if (!(error instanceof UnreadableDocument)) throw error;
  return [error.field, error.message];
}

describe("a text is refused", () => {
  test.each([
    ["of an unknown type", "a", "image/png", "/content_type", "text/plain, text/markdown"],
    ["without a type", "a", "", "/content_type", '""'],
    ["of a binary type", "a", PDF, "/text", "content_base64"],
    ["of another binary type", "a", DOCX, "/text", "content_base64"],
    ["that is empty", "", "text/plain", "/text", "contains no text"],
    ["of white space", " \n\t\u00A0\u2028\uFEFF", "text/plain", "/text", "contains no text"],
    ["with NUL", "ab\0c", "text/plain", "/text", "NUL character at offset 2"],
    ["with NUL in Markdown", "\0", "text/markdown", "/text", "NUL"],
    ["that is too long", "a".repeat(MAX_TEXT + 1), "text/plain", "/text", "20,000,000 characters"],
    ["in too many paragraphs", "a\n\n".repeat(1_000_001), "text/plain", "/text", "1,000,000 paragraphs"],
    ["in too many Markdown blocks", "# a\n".repeat(1_000_001), "text/markdown", "/text", "1,000,000 para"],
    ["of HTML without text", "<p> &nbsp; <script>a()</script>", "text/html", "/text", "contains no text"],
  ])("%s", async (_, text, type, field, message) => {
    const [at, what] = await refusal(readText(text, type));
    expect(at).toBe(field);
    expect(what).toContain(message);
  });
});

describe("bytes are refused", () => {
  test.each([
    ["that are empty", new Uint8Array(), "text/plain", "/content_base64", "is empty"],
    [
      "that are not UTF-8",
      new Uint8Array([0x61, 0xe9, 0x62]),
      "text/plain",
      "/content_base64",
      "not valid UTF-8",
    ],
    [
      "that are half a UTF-16 character",
      new Uint8Array([0x61, 0, 0x62]),
      "text/csv; charset=utf-16",
      "/content_base64",
      "UTF",
    ],
    ["in an unknown charset", utf8("a"), "text/plain; charset=x-klingon", "/content_type", "x-klingon"],
    ["with NUL", utf8("a\0"), "text/plain", "/content_base64", "NUL"],
    ["that are a byte order mark only", utf8("\uFEFF"), "text/html", "/content_base64", "contains no text"],
    ["of an unknown type", utf8("a"), "application/zip; charset=utf-8", "/content_type", "application/pdf"],
  ])("%s", async (_, bytes, type, field, message) => {
    const [at, what] = await refusal(readBytes(bytes, type));
    expect(at).toBe(field);
    expect(what).toContain(message);
  });
});

describe("the charset is", () => {
  const latin = new Uint8Array([0x63, 0x61, 0x66, 0xe9]);
  test.each([
    ["UTF-8", utf8("café"), "text/plain"],
    ["UTF-8 after its mark", utf8("\uFEFFcafé"), "text/plain"],
    ["named", latin, "Text/Plain; Charset=ISO-8859-1"],
    ["named in quotes", latin, 'text/plain; format=flowed; charset="windows-1252"'],
    ["UTF-16 by its mark", new Uint8Array([0xff, 0xfe, 0x63, 0, 0x61, 0, 0x66, 0, 0xe9, 0]), "text/plain"],
    ["UTF-16 by name", new Uint8Array([0x63, 0, 0x61, 0, 0x66, 0, 0xe9, 0]), "text/plain;charset=utf-16le"],
    ["in the page", Buffer.concat([utf8('<meta charset="latin1"><p>'), latin]), "text/html"],
    ["ignored if a page cannot be in it", utf8('<meta charset="utf-16">café'), "text/html"],
    ["ignored if unknown", utf8('<meta charset="klingon">café'), "text/html"],
  ])("%s", async (_, bytes, type) => {
    expect((await readBytes(bytes, type)).text).toBe("café");
  });
});

test("bytes are not changed", async () => {
  const bytes = utf8("some text");
  await readBytes(bytes, "text/plain");
  expect(new TextDecoder().decode(bytes)).toBe("some text");
});

test("plain text is stored unchanged, in paragraphs", async () => {
  const text = "\n one\ntwo\r\n \t\r\nthree\u0007\n\n\n\nfour ";
  const document = await readText(text);
  expect(document.text).toBe(text);
  expect(document.blocks.map(({ start, end }) => text.slice(start, end).trim())).toEqual([
    "one\ntwo",
    "three\u0007",
    "four",
  ]);
});

test("lone surrogates are replaced, in place", async () => {
  const document = await readText("a\uD800b\uDC00 😀");
  expect(document.text).toBe("a\uFFFDb\uFFFD 😀");
});

test("control characters are dropped from text extracted from a format", async () => {
  const document = await readText("<p>a\u0000\u0007b\u0085c\fd\te</p>", "text/html");
  expect(document.text).toBe("ab c d e");
});

const textTypes = CONTENT_TYPES.filter((type) => type !== PDF && type !== DOCX);
const hostile = fc.oneof(
  fc.string({ unit: "binary", maxLength: 200 }),
  fc
    .array(
      fc.constantFrom(
        ..."<p>,</p>,<b hidden>,<table><tr><td>,</tr>,<pre>,<!--,-->,&amp;,# ,## ,- ,1. ,> ,```,~~~,---,===,| a | b |,|-|-|,{,},[,],:,\n,\n\n,    ,\t,a b,é。,😀,\uD800,\r\n,\0,1e5".split(
          ",",
        ),
        ",",
        '"',
      ),
      { maxLength: 40 },
    )
    .map((parts) => parts.join("")),
);

describe("any text is refused or read into ordered blocks:", () => {
  test.each(textTypes)("%s", async (type) => {
    await fc.assert(
      fc.asyncProperty(hostile, async (input) => {
        const document = await readText(input, type).catch((error) => {
          if (error instanceof UnreadableDocument) return null;
          throw error;
        });
        if (document === null) return;
        const { text, blocks } = document;
        expect(text.isWellFormed()).toBe(true);
        if (type === "text/plain" || type === "text/markdown") expect(text).toBe(input.toWellFormed());
        let at = 0;
        for (const { kind, level, start, end } of blocks) {
          expect(start).toBeGreaterThanOrEqual(at);
          expect(end).toBeGreaterThanOrEqual(start);
          expect(kind === "heading" ? level >= 1 && level <= 6 : level === 0).toBe(true);
          at = end;
        }
        expect(at).toBeLessThanOrEqual(text.length);
        expect(blocks.length).toBeGreaterThan(0);
      }),
      { numRuns: 300 },
    );
  });
});
