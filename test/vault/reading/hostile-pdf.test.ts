/** PDF files designed to harm their reader are read or refused, within the limits of the process. */
import { afterAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { deflateSync } from "node:zlib";
import { JobRefused } from "../../../src/reading/job-errors.ts";
import { DocumentReader } from "../../../src/vault/reading/document-readers.ts";
import { bytesRequest, command, MIB, PDF } from "./support.ts";

const CEILING = 512 * MIB;
const CONTENT = "BT /F1 12 Tf 72 720 Td (Hello) Tj ET";

type Part = string | Uint8Array;
const join = (...parts: readonly Part[]) =>
  Buffer.concat(parts.map((part) => Buffer.from(part as string, "latin1")));
const stream = (entries: string, data: Part, length = `${data.length}`) =>
  join(`<< ${entries} /Length ${length} >>\nstream\n`, data, "\nendstream");
const flate = (data: Part) => deflateSync(join(data));
const hex = (data: Part) => `${join(data).toString("hex")}>`;
const blanks = (size: number) => Buffer.alloc(size, 32);

/** A file with one page, whose content is object 4, and with further objects from number 5 on. */
function pdf(content: Part, ...others: readonly Part[]): Uint8Array {
  const objects: Part[] = [
    "<< /Type /Catalog /Pages 2 0 R >>",
    "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
    "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> /XObject << /X 5 0 R >> >> >>",
    content,
    ...others,
  ];
  let file: Buffer = join("%PDF-1.4\n");
  const offsets: number[] = [];
  for (const [index, object] of objects.entries()) {
    offsets.push(file.length);
    file = join(file, `${index + 1} 0 obj\n`, object, "\nendobj\n");
  }
  const table = offsets.map((offset) => `${String(offset).padStart(10, "0")} 00000 n \n`).join("");
  const trailer = `trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${file.length}\n%%EOF\n`;
  return join(file, `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${table}`, trailer);
}

/** A PDF 1.5 file: all objects except the content are in a compressed stream, and so is the cross-reference table. */
function compressed({ inside = "", entries = "", predictor = false } = {}): Uint8Array {
  const objects = [
    "<< /Type /Catalog /Pages 2 0 R >>",
    "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
    "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>",
  ];
  const starts = objects.map((_, index) => objects.slice(0, index).join("").length);
  const head = starts.map((start, index) => `${index + 1} ${start} `).join("");
  const header = join("%PDF-1.5\n");
  const content = join("4 0 obj\n", stream("/Filter /FlateDecode", flate(CONTENT)), "\nendobj\n");
  const packed = flate(head + objects.join("") + inside);
  const first = join(
    "5 0 obj\n",
    stream(`/Type /ObjStm /N 3 /First ${head.length} /Filter /FlateDecode`, packed),
    "\nendobj\n",
  );
  const at = [header.length, header.length + content.length, header.length + content.length + first.length];
  const rows = [
    [0, 0, 0, 255],
    ...[0, 1, 2].map((index) => [2, 0, 5, index]),
    ...at.map((offset) => [1, offset >> 8, offset & 255, 0]),
  ];
  const above = (index: number, column: number) => rows[index - 1]?.[column] ?? 0;
  const data = predictor
    ? rows.flatMap((row, index) => [2, ...row.map((byte, column) => (byte - above(index, column)) & 255)])
    : rows.flat();
  const parms = predictor ? "/DecodeParms << /Predictor 12 /Columns 4 >>" : "";
  const references = stream(
    `/Type /XRef /W [1 2 1] /Root 1 0 R ${entries || "/Size 7"} /Filter /FlateDecode ${parms}`,
    flate(Buffer.from(data)),
  );
  return join(header, content, first, "6 0 obj\n", references, `\nendobj\nstartxref\n${at[2]}\n%%EOF\n`);
}

const large = flate(blanks(40 * MIB));
const TWICE = "BI /W 1 /H 1 /F [/Fl /Fl] ID";

let reader: DocumentReader | null = null;
afterAll(() => reader?.end());

/** The file's text, or its fault. @throws Error if the file crashed its process or exceeded the memory limit */
async function read(bytes: Uint8Array): Promise<string> {
  if (!reader?.isUsable) reader = new DocumentReader(command(CEILING));
  try {
    const { pages } = await reader.read(bytesRequest(bytes, PDF), 300_000);
    return pages.map(({ text }) => text).join("");
  } catch (error) {
    if (error instanceof JobRefused) return error.message;
    throw error;
  } finally {
    if (process.platform === "linux") expect(mostMemory(reader.pid)).toBeLessThan(CEILING);
  }
}

/** Peak memory in bytes; 0 if the process has ended, because it had used a quarter of its limit. */
function mostMemory(pid: number): number {
  try {
    const peak = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
    return Number(peak ?? 0) * 1024;
  } catch {
    return 0;
  }
}

/** Results of a file that is not read: it is empty, or cannot be understood. */
const NOTHING =
  /^(?:Hello|contains no text: .*|is (?:not )?a PDF file that can(?:'t| not)? be read: .*|has a page of more than .*)$/;

describe("a PDF file harms nobody", () => {
  const third = stream("/Filter /FlateDecode", flate(blanks(30 * MIB)));
  const runs = Buffer.alloc(2 * 270_000, Buffer.from([129, 32]));
  const small = stream("/Filter /FlateDecode", flate(CONTENT));
  const content = (entries: string, data: Part, length?: string) => pdf(stream(entries, data, length));
  test.each<[string, Uint8Array]>([
    ["whose stream is large", content("/Filter /FlateDecode", large)],
    ["with a short filter name", content("/Filter [/Fl]", large)],
    ["with an escaped filter name", content("/F#69lter /Fl#61teDecode", large)],
    ["with an old name of the key", content("/F /Fl", large)],
    ["with a wrong length", content("/Filter /Fl", large, "5")],
    ["with a length in another object", content("/Filter /Fl", large, "5 0 R")],
    ["with a length beyond the file", content("/Filter /Fl", large, "999999999")],
    ["without an end", join("%PDF-1.4\n4 0 obj << /Filter /Fl >> stream\n", large)],
    ["compressed twice", content("/Filter [/FlateDecode /FlateDecode]", flate(large))],
    ["in hexadecimal", content("/Filter [/ASCIIHexDecode /FlateDecode]", hex(large))],
    ["of runs", content("/Filter /RunLengthDecode", runs)],
    ["compressed runs", content("/Filter [/Fl /RL]", flate(runs))],
    ["by LZW", content("/Filter /LZWDecode", lzw(40 * MIB))],
    ["after a string that contains the word", content("/A (>> stream) /Filter /Fl", large)],
    ["after a comment", content("/A 1 % >> stream\n/Filter /Fl", large)],
    ["within a string", pdf(small, join("(", "9 0 obj << /Filter /Fl >> stream\n", large, ")"))],
    ["within another stream", pdf(stream("", join("9 0 obj\n", stream("/Filter /Fl", large))))],
    ["a font's", pdf(small, stream("/Length1 9 /Filter /Fl", large))],
    ["whose streams are large together", pdf(small, third, third, third, third, third)],
    ["of objects", pdf(small, stream("/N 1 /First 4 /Filter /Fl", flate(blanks(9 * MIB))))],
    ["with a stream among them", compressed({ inside: "<< /Filter /Fl >> %\nstream\nx" })],
    ["with a filter named elsewhere", content("/Filter 5 0 R", large)],
    ["with one of the filters elsewhere", content("/Filter [5 0 R]", large)],
    ["with two sets of filters", content("/Filter /Fl /Filter /LZW", large)],
    ["with a stream in an object", pdf(small, join("<< /A ", stream("/Filter /Fl", large), ">>"))],
    [
      "with large rows",
      content("/Filter /Fl /DecodeParms << /Predictor 12 /Columns 900000000 >>", flate("")),
    ],
    ["with rows named elsewhere", content("/Filter /Fl /DecodeParms 5 0 R", flate(""))],
    ["with a thousand million objects", compressed({ entries: "/Size 1000000000" })],
    ["with as many in a range", compressed({ entries: "/Size 7 /Index [0 1000000000]" })],
    ["with objects that take no space", pdf(small, stream("/W [0 0 0] /Size 9", ""))],
    ["with a picture compressed twice", content("", TWICE)],
    ["with such a picture in compressed content", content("/Filter /Fl", flate(TWICE))],
    ["that is encrypted", join("%PDF-1.4\ntrailer << /Encrypt 9 0 R >>")],
    ["with a page of countless pieces", content("", `BT /F1 1 Tf ${"(a) Tj T*\n".repeat(210_000)} ET`)],
    ["nested deeply", pdf(small, "[".repeat(100_000))],
  ])(
    "%s",
    async (_, bytes) => {
      expect(await read(bytes)).toMatch(NOTHING);
    },
    120_000,
  );
});

describe("a PDF file is read", () => {
  const packed = flate(CONTENT);
  const content = (entries: string, data: Part, length?: string) => pdf(stream(entries, data, length));
  const draws = stream("", `${CONTENT} /X Do`);
  const image = (entries: string, data: Part) =>
    pdf(draws, stream(`/Subtype /Image /Width 9000 /Height 9000 /BitsPerComponent 8 ${entries}`, data));
  test.each<[string, Uint8Array]>([
    ["without compression", content("", CONTENT)],
    ["with it", content("/Filter /FlateDecode", packed)],
    ["in an array", content("/Filter [ /FlateDecode ] /DecodeParms [null]", packed)],
    ["compressed twice", content("/Filter [/FlateDecode /FlateDecode]", flate(packed))],
    ["in hexadecimal", content("/Filter [/AHx /Fl]", hex(packed))],
    ["in base 85", content("/Filter /ASCII85Decode", base85(CONTENT))],
    ["compressed in base 85", content("/Filter [/ASCII85Decode /FlateDecode]", base85(packed))],
    ["of runs", content("/Filter /RunLengthDecode", join(Buffer.from([CONTENT.length - 1]), CONTENT))],
    ["with a length in another object", pdf(stream("/Filter /Fl", packed, "5 0 R"), `${packed.length}`)],
    ["with a wrong length", content("/Filter /Fl", packed, "3")],
    ["with objects compressed", compressed()],
    ["with objects compressed and predicted", compressed({ predictor: true })],
    [
      "with a large picture",
      image("/ColorSpace /DeviceGray /Filter /FlateDecode", flate(Buffer.alloc(81_000_000))),
    ],
    ["with a photograph", image("/ColorSpace /DeviceRGB /Filter [/DCTDecode]", "\xff\xd8\xff\xd9")],
    ["with a large attachment", pdf(draws, stream("/Type /EmbeddedFile /Filter /Fl", large))],
    ["with a picture in its content", content("", `${CONTENT} BI /W 1 /H 1 /F [/AHx /Fl] ID 00> EI`)],
    ["with another damaged stream", pdf(draws, stream("/Filter /Fl", "x\x9c\x07\xff\xff"))],
  ])("%s", async (_, bytes) => {
    expect(await read(bytes)).toBe("Hello");
  });
});

/** Blanks in the best LZW coding: each code represents one blank more than the previous one. */
function lzw(size: number): Uint8Array {
  const bytes: number[] = [];
  let [bits, held, length] = [0, 0, 0];
  const put = (code: number, width: number) => {
    bits = ((bits << width) | code) & 0xffffff;
    for (held += width; held >= 8; held -= 8) bytes.push((bits >>> (held - 8)) & 255);
  };
  while (length < size) {
    put(256, length === 0 ? 9 : 12);
    put(32, 9);
    length += 1;
    for (let code = 258, step = 2; code < 4_095; code += 1, step += 1) {
      put(code, code < 511 ? 9 : code < 1_023 ? 10 : code < 2_047 ? 11 : 12);
      length += step;
    }
  }
  return Buffer.from(bytes);
}

function base85(data: Part): string {
  const bytes = join(data);
  let text = "";
  for (let at = 0; at < bytes.length; at += 4) {
    const count = Math.min(4, bytes.length - at);
    let value = Buffer.concat([bytes.subarray(at, at + 4), Buffer.alloc(4)]).readUInt32BE(0);
    let group = "";
    for (let index = 0; index < 5; index += 1, value = Math.floor(value / 85))
      group = String.fromCharCode((value % 85) + 33) + group;
    text += group.slice(0, count + 1);
  }
  return `${text}~>`;
}
