import { describe, expect, test } from "bun:test";
import { zipSync } from "fflate";
import { unzip } from "../../../src/vault/read/docx/zip.ts";
import { readBytes, UnreadableDocument } from "../../../src/vault/read/read.ts";

const DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
const W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"';
const utf8 = (text: string) => new TextEncoder().encode(text);

const PARTS = {
  "[Content_Types].xml":
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="xml" ContentType="application/xml"/></Types>',
  "_rels/.rels":
    '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>',
};

const paragraph = (text: string, style = "") =>
  `<w:p>${style && `<w:pPr><w:pStyle w:val="${style}"/></w:pPr>`}<w:r><w:t xml:space="preserve">${text}</w:t></w:r></w:p>`;
const cell = (text: string) => `<w:tc>${paragraph(text)}</w:tc>`;
const wordXml = (body: string, doctype = "") =>
  `<?xml version="1.0"?>${doctype}<w:document ${W}><w:body>${body}</w:body></w:document>`;

function docx(document: string, parts: Record<string, string | Uint8Array> = {}): Uint8Array {
  const all = { ...PARTS, "word/document.xml": document, ...parts };
  const files = Object.entries(all).map(([name, part]) => [
    name,
    typeof part === "string" ? utf8(part) : part,
  ]);
  return zipSync(Object.fromEntries(files));
}

/** An entity that expands to 10^9 letters, and one that refers to a file. */
const LAUGHS = `<!DOCTYPE x [<!ENTITY l0 "ha">${Array.from({ length: 9 }, (_, i) => `<!ENTITY l${i + 1} "${`&l${i};`.repeat(10)}">`).join("")}]>`;
const FILE = '<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/hostname">]>';

function patched(bytes: Uint8Array, signature: number, offset: number, value: number): Uint8Array {
  const copy = bytes.slice();
  const view = new DataView(copy.buffer);
  for (let at = 0; at + 4 <= copy.length; at += 1) {
    if (view.getUint32(at, true) === signature) view.setUint32(at + offset, value, true);
  }
  return copy;
}

const whole = docx(wordXml(paragraph("text")));
const bomb = docx(wordXml(`${" ".repeat(80_000_000)}${paragraph("text")}`));

describe("a DOCX file is refused", () => {
  test.each([
    ["that is not a zip file", utf8("PK, or so it says"), "is not a zip file"],
    ["that is cut off", whole.slice(0, -30), "is not a zip file"],
    ["whose directory is damaged", patched(whole, 0x02014b50, 0, 0), "is a broken zip file"],
    ["whose entries are elsewhere", patched(whole, 0x02014b50, 42, 7), "is a broken zip file"],
    ["whose entries are after its end", patched(whole, 0x02014b50, 20, 1e9), "is a broken zip file"],
    ["whose entries are damaged", patched(whole, 0x02014b50, 20, 9), "is a broken zip file"],
    ["that is another zip file", zipSync({ "a.xml": utf8("<a/>") }), "not a DOCX file"],
    ["that is another office file", docx("<a/>"), "not a DOCX file that can be read"],
    ["whose XML is broken", docx("<w:document"), "not a DOCX file that can be read"],
    ["without text", docx(wordXml(paragraph(" "))), "contains no text"],
    ["that expands to too much", bomb, "inflates to more"],
    ["that gives a false size for that", patched(bomb, 0x02014b50, 24, 10), "is a broken zip file"],
    [
      "with entities in entities",
      docx(wordXml(paragraph("&l9;"), LAUGHS)),
      "it contains a document type declaration",
    ],
    [
      "with entities that are files",
      docx(wordXml(paragraph("&f;"), FILE)),
      "it contains a document type declaration",
    ],
    [
      "that is nested too deeply",
      docx(wordXml("<w:sdt>".repeat(30_000) + "</w:sdt>".repeat(30_000))),
      "can be read",
    ],
  ])("%s", async (_, bytes, message) => {
    const error = await readBytes(bytes, DOCX).catch((reason) => reason);
    expect(error).toBeInstanceOf(UnreadableDocument);
    expect(error.field).toBe("/content_base64");
    expect(error.message).toContain(message);
  });
});

test("headings, paragraphs and tables are read", async () => {
  const table = `<w:tbl><w:tr>${cell("1")}${cell("2")}</w:tr><w:tr>${cell("3")}${cell("4")}</w:tr></w:tbl>`;
  const bytes = docx(wordXml(paragraph("A title", "Heading1") + paragraph("One &amp; two.") + table));
  const { text, blocks } = await readBytes(bytes, DOCX);
  expect(text).toBe("A title\n\nOne & two.\n\n1 | 2\n3 | 4");
  expect(blocks.map(({ kind, level }) => kind + level)).toEqual(["heading1", "paragraph0", "row0", "row0"]);
});

test("pictures yield their alternative text; external ones are not fetched", async () => {
  let calls = 0;
  using server = Bun.serve({ port: 0, fetch: () => new Response(String(calls++)) });
  const picture = `<w:p><w:r><w:drawing xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:pic="http://schemas.openxmlformats.org/drawingml/2006/picture" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><wp:inline><wp:docPr descr="a plan"/><a:graphic><a:graphicData><pic:pic><pic:blipFill><a:blip r:REF="rId9"/></pic:blipFill></pic:pic></a:graphicData></a:graphic></wp:inline></w:drawing></w:r></w:p>`;
  const relation = (target: string, mode: string) =>
    `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId9" Type="image" Target="${target}"${mode}/></Relationships>`;
  const inside = docx(wordXml(paragraph("text") + picture.replace("REF", "embed")), {
    "word/_rels/document.xml.rels": relation("media/a.png", ""),
    "word/media/a.png": new Uint8Array(100),
  });
  expect((await readBytes(inside, DOCX)).text).toBe("text\n\na plan");
  const outside = docx(wordXml(paragraph("text") + picture.replace("REF", "link")), {
    "word/_rels/document.xml.rels": relation(`${server.url}a.png`, ' TargetMode="External"'),
  });
  expect((await readBytes(outside, DOCX)).text).toStartWith("text");
  expect(calls).toBe(0);
});

describe("a DOCX file is read", () => {
  const MC = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"';
  const box = (text: string) => `<w:txbxContent>${paragraph(text)}</w:txbxContent>`;
  const run = (text: string) => `<w:r><w:t>${text}</w:t></w:r>`;
  const deleted = "<w:pPr><w:rPr><w:del/></w:rPr></w:pPr>";
  test.each([
    [
      "a text box after its paragraph",
      `<w:p>${run("be")}<w:r>${box("in a box")}</w:r>${run("fore")}</w:p>`,
      "before\n\nin a box",
    ],
    [
      "content that exists in two forms, once",
      `<w:p><w:r><mc:AlternateContent ${MC}><mc:Choice>${box("new")}</mc:Choice><mc:Fallback>${box("old")}</mc:Fallback></mc:AlternateContent></w:r></w:p>`,
      "new",
    ],
    [
      "an old form if there is no other",
      `<w:p><w:r><mc:AlternateContent ${MC}><mc:Fallback>${box("old")}</mc:Fallback></mc:AlternateContent></w:r></w:p>`,
      "old",
    ],
    [
      "paragraphs merged by deleting the end of one",
      `<w:p>${deleted}${run("one ")}</w:p><w:p>${run("two")}</w:p>`,
      "one two",
    ],
    [
      "a formula",
      '<w:p><m:oMath xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"><m:r><m:t>E=mc</m:t></m:r></m:oMath></w:p>',
      "E=mc",
    ],
    [
      "a cell with two paragraphs",
      `<w:tbl><w:tr><w:tc>${paragraph("a")}${paragraph("b")}</w:tc>${cell("c")}</w:tr></w:tbl>`,
      "a b | c",
    ],
  ])("%s", async (_, body, expected) => {
    expect((await readBytes(docx(wordXml(body)), DOCX)).text).toBe(expected);
  });

  test("whatever it calls its namespace, in UTF-8 and in UTF-16", async () => {
    const xml = wordXml(paragraph("text")).replaceAll("w:", "ns0:").replace(":w=", ":ns0=");
    const utf16 = new Uint8Array([0xff, 0xfe, ...Buffer.from(wordXml(paragraph("weit")), "utf16le")]);
    expect((await readBytes(docx(xml), DOCX)).text).toBe("text");
    expect((await readBytes(docx("", { "word/document.xml": utf16 }), DOCX)).text).toBe("weit");
  });
});

test("the memory of an unzipper is bounded by its output, over all entries", async () => {
  const bytes = zipSync({
    a: new Uint8Array(600),
    b: new Uint8Array(600),
    c: [new Uint8Array(600), { level: 0 }],
  });
  expect((await unzip(bytes, () => true, 1_800)).size).toBe(3);
  await expect(unzip(bytes, () => true, 1_799)).rejects.toThrow("inflates to more");
  expect((await unzip(bytes, (name) => name === "b", 600)).get("b")?.length).toBe(600);
});
