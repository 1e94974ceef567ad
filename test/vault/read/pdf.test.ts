import { describe, expect, test } from "bun:test";
import { paragraphsOf } from "../../../src/vault/read/pdf-lines.ts";
import { readBytes, UnreadableDocument } from "../../../src/vault/read/read.ts";

const PDF = "application/pdf";

/** A minimal PDF with one content stream per page. */
function pdf(pages: readonly string[], trailer = ""): Uint8Array {
  const objects = [
    "<< /Type /Catalog /Pages 2 0 R >>",
    `<< /Type /Pages /Kids [${pages.map((_, index) => `${5 + index * 2} 0 R`).join(" ")}] /Count ${pages.length} >>`,
    "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    "<< >>",
    ...pages.flatMap((content, index) => [
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents ${6 + index * 2} 0 R /Resources << /Font << /F1 3 0 R >> >> >>`,
      `<< /Length ${content.length} >>\nstream\n${content}\nendstream`,
    ]),
  ];
  let file = "%PDF-1.4\n";
  const offsets: number[] = [];
  for (const [index, object] of objects.entries()) {
    offsets.push(file.length);
    file += `${index + 1} 0 obj\n${object}\nendobj\n`;
  }
  const table = offsets.map((offset) => `${String(offset).padStart(10, "0")} 00000 n \n`).join("");
  const start = file.length;
  file += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${table}`;
  file += `trailer\n<< /Size ${objects.length + 1} /Root 1 0 R /Info 4 0 R ${trailer} >>\nstartxref\n${start}\n%%EOF\n`;
  return new TextEncoder().encode(file);
}

/** A page of lines, each with its distance from the line above. */
const page = (...lines: readonly (readonly [down: number, text: string])[]) =>
  `BT /F1 12 Tf 72 720 Td ${lines.map(([down, text]) => `0 ${-down} Td (${text}) Tj`).join(" ")} ET`;

const whole = pdf([page([0, "Hello"])]);
const KEY = "/Encrypt << /Filter /Standard /V 1 /R 2 /O <OO> /U <OO> /P -4 >> /ID [<00><00>]".replaceAll(
  "OO",
  "ab".repeat(32),
);

describe("a PDF file is refused", () => {
  test.each([
    ["that is not one", new TextEncoder().encode("hello"), "not a PDF file that can be read"],
    ["that is cut off", whole.slice(0, 200), "not a PDF file that can be read"],
    ["that is encrypted", pdf([page([0, "a"])], KEY), "encrypted with a password"],
    ["without text", pdf(["0 0 100 100 re f", ""]), "contains no text: it may consist of scanned images"],
    ["with blanks only", pdf([page([0, "   "])]), "contains no text: it may consist of scanned images"],
  ])("%s", async (_, bytes, message) => {
    const error = await readBytes(bytes, PDF).catch((reason) => reason);
    expect(error).toBeInstanceOf(UnreadableDocument);
    expect(error.field).toBe("/content_base64");
    expect(error.message).toContain(message);
  });
});

test("a PDF file is read page by page, in paragraphs", async () => {
  const long = "The first line of it goes on to the right edge of the text, and then exam-";
  const bytes = pdf([
    page([0, long], [14, "ple text ends."], [14, "A new line."], [40, "Second."]),
    page([0, "Page two."]),
  ]);
  const { text, blocks } = await readBytes(bytes, PDF);
  expect(text).toBe(`${long.slice(0, -1)}ple text ends.\nA new line.\n\nSecond.\n\nPage two.`);
  expect(blocks.map(({ kind }) => kind)).toEqual(["paragraph", "paragraph", "paragraph"]);
  expect(bytes.length).toBeGreaterThan(0);
});

test("a Buffer is also read, and not changed", async () => {
  const buffer = Buffer.from(whole);
  expect((await readBytes(buffer, PDF)).text).toBe("Hello");
  expect(buffer.equals(whole)).toBe(true);
});

describe("lines are joined", () => {
  const item = (str: string, y: number, width = 100, x = 0) => ({
    str,
    width,
    height: 10,
    transform: [10, 0, 0, 10, x, y],
    hasEOL: true,
  });
  test.each([
    ["with a space", [item("goes", 30), item("on", 18)], ["goes on"]],
    ["with a line end after a short one", [item("ends", 30, 40), item("next", 18)], ["ends\nnext"]],
    ["if a word is hyphenated", [item("exam-", 30), item("ple", 18)], ["example"]],
    ["not at another hyphen", [item("A-", 30), item("B", 18), item("1-", 6), item("2", -6)], ["A- B 1- 2"]],
    ["without space in Chinese", [item("漢字", 30), item("かな", 18)], ["漢字かな"]],
    ["not across a gap", [item("a", 60), item("b", 30)], ["a", "b"]],
    ["into the next column", [item("left", 30, 100, 0), item("right", 700, 100, 120)], ["left\nright"]],
    ["without those that are blank", [item(" ", 60), item("a", 30), item("", 18)], ["a"]],
    ["of a page without text", [], []],
  ])("%s", (_, items, expected) => {
    expect(paragraphsOf(items)).toEqual(expected);
  });
});
