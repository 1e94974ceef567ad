/** Our DOCX reader compared with a full converter, on the converter's own files and on generated ones. */
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { zipSync } from "fflate";
import mammoth from "mammoth";
import { readDocx } from "../../../src/vault/read/docx/docx.ts";
import { readHtml } from "../../../src/vault/read/html.ts";

const FOLDER = join(dirname(Bun.resolveSync("mammoth/package.json", import.meta.dir)), "test", "test-data");
const files = readdirSync(FOLDER).filter((name) => name.endsWith(".docx"));
/** Our reader numbers notes like their references; the converter makes them list items with a back arrow. */
const NOTES = /note/;

async function byOracle(bytes: Uint8Array) {
  const { value } = await mammoth.convertToHtml(
    { buffer: Buffer.from(bytes) },
    {
      styleMap: ["p[style-name='Title'] => h1:fresh", "p[style-name='Subtitle'] => p:fresh"],
      includeEmbeddedStyleMap: false,
      convertImage: mammoth.images.imgElement(async () => ({ src: "" })),
    },
  );
  return readHtml(value);
}

test.each(files.filter((name) => !NOTES.test(name)))("%s", async (name) => {
  const bytes = readFileSync(join(FOLDER, name));
  const expected = await byOracle(bytes);
  const read = await readDocx(bytes);
  expect([read.text, read.blocks]).toEqual([expected.text, expected.blocks]);
});

test.each([
  ["footnotes.docx", "Ouch[1].[2]\n\n[1] A tachyon walks into a bar.\n\n[2] Fin."],
  ["endnotes.docx", "Ouch[1].[2]\n\n[1] A tachyon walks into a bar.\n\n[2] Fin."],
  ["footnote-hyperlink.docx", "[1]\n\n[1] Example"],
])("%s, with notes numbered like their references", async (name, expected) => {
  expect((await readDocx(readFileSync(join(FOLDER, name)))).text).toBe(expected);
});

describe("generated documents", () => {
  const W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"';
  const utf8 = (text: string) => new TextEncoder().encode(text);
  const type = (name: string, main: string) =>
    `<Override PartName="/word/${name}.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.${main}+xml"/>`;
  const relation = (id: string, kind: string, target: string) =>
    `<Relationship Id="${id}" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/${kind}" Target="${target}"/>`;
  const relations = (inner: string) =>
    utf8(
      `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">${inner}</Relationships>`,
    );
  const style = (id: string, name: string) =>
    `<w:style w:type="paragraph" w:styleId="${id}"><w:name w:val="${name}"/></w:style>`;
  const PARTS = {
    "[Content_Types].xml": utf8(
      `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="xml" ContentType="application/xml"/>${type("document", "document.main")}</Types>`,
    ),
    "_rels/.rels": relations(relation("r1", "officeDocument", "word/document.xml")),
    "word/_rels/document.xml.rels": relations(
      relation("r2", "styles", "styles.xml") + relation("r3", "numbering", "numbering.xml"),
    ),
    "word/styles.xml": utf8(
      `<w:styles ${W}>${style("Titel", "Title")}${style("berschrift1", "heading 1")}${style("berschrift3", "heading 3")}${style("Standard", "Normal")}</w:styles>`,
    ),
    "word/numbering.xml": utf8(
      `<w:numbering ${W}><w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/></w:lvl></w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num></w:numbering>`,
    ),
  };
  const docx = (body: string) =>
    zipSync({
      ...PARTS,
      "word/document.xml": utf8(`<w:document ${W}><w:body>${body}</w:body></w:document>`),
    });

  const words = fc.constantFrom("one", "two", "three", "a &amp; b", "d.");
  const run = fc.oneof(
    words.map((word) => `<w:r><w:t xml:space="preserve">${word} </w:t></w:r>`),
    words.map((word) => `<w:r><w:rPr><w:b/></w:rPr><w:t>${word}</w:t><w:tab/><w:t>${word}</w:t></w:r>`),
    words.map((word) => `<w:ins><w:r><w:t>${word}</w:t></w:r></w:ins>`),
    words.map((word) => `<w:del><w:r><w:delText>${word}</w:delText></w:r></w:del>`),
    words.map((word) => `<w:moveFrom><w:r><w:t>${word}</w:t></w:r></w:moveFrom>`),
    words.map((word) => `<w:hyperlink w:anchor="x"><w:r><w:t>${word}</w:t></w:r></w:hyperlink>`),
    words.map(
      (word) => `<w:sdt><w:sdtPr/><w:sdtContent><w:r><w:t>${word}</w:t></w:r></w:sdtContent></w:sdt>`,
    ),
    fc.constant("<w:r><w:br/></w:r>"),
    fc.constant("<w:r><w:noBreakHyphen/></w:r>"),
    fc.constant("<w:r><w:instrText> PAGE </w:instrText></w:r>"),
  );
  const properties = fc.constantFrom(
    "",
    '<w:pPr><w:pStyle w:val="Titel"/></w:pPr>',
    '<w:pPr><w:pStyle w:val="berschrift1"/></w:pPr>',
    '<w:pPr><w:pStyle w:val="berschrift3"/></w:pPr>',
    '<w:pPr><w:pStyle w:val="Standard"/></w:pPr>',
    '<w:pPr><w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr></w:pPr>',
    '<w:pPr><w:numPr><w:ilvl w:val="0"/><w:numId w:val="0"/></w:numPr></w:pPr>',
    '<w:pPr><w:pPrChange><w:pPr><w:pStyle w:val="berschrift1"/></w:pPr></w:pPrChange></w:pPr>',
  );
  const paragraph = fc
    .tuple(properties, fc.array(run, { minLength: 1, maxLength: 4 }))
    .map(([pPr, runs]) => `<w:p>${pPr}${runs.join("")}</w:p>`);
  const plain = words.map((word) => `<w:p><w:r><w:t>${word}</w:t></w:r></w:p>`);
  const table = fc
    .array(fc.array(plain, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 3 })
    .map(
      (rows) =>
        `<w:tbl>${rows.map((row) => `<w:tr>${row.map((cell) => `<w:tc>${cell}</w:tc>`).join("")}</w:tr>`).join("")}</w:tbl>`,
    );
  const body = fc.array(fc.oneof({ weight: 4, arbitrary: paragraph }, { weight: 1, arbitrary: table }), {
    minLength: 1,
    maxLength: 6,
  });

  test("have the same text in the same pieces", async () => {
    await fc.assert(
      fc.asyncProperty(body, async (pieces) => {
        const bytes = docx(pieces.join(""));
        const [expected, read] = [await byOracle(bytes), await readDocx(bytes)];
        expect([read.text, read.blocks]).toEqual([expected.text, expected.blocks]);
      }),
      { numRuns: 300 },
    );
  }, 120_000);
});
