/** Documents designed to harm their reader, and the processes that read them. */
import { join } from "node:path";
import { deflateRawSync, deflateSync } from "node:zlib";
import { zipSync } from "fflate";
import { READ_DOCUMENTS, readingCommand } from "../../../src/reading/command.ts";
import type { PrepareRequest } from "../../../src/vault/messages.ts";

export const MIB = 1024 * 1024;
export const DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
export const PDF = "application/pdf";
const MAIN = Bun.pathToFileURL(join(import.meta.dir, "..", "..", "..", "src", "main.ts"));

/** The command of a reading process from the sources, with this memory limit. */
export const command = (ceiling = 1024 * MIB): readonly string[] =>
  readingCommand(MAIN, READ_DOCUMENTS, ceiling);

export function textRequest(text: string, type = "text/csv"): PrepareRequest {
  return { document: 1, title: "A note", content: { kind: "text", text, type } };
}

export function bytesRequest(bytes: Uint8Array, type: string): PrepareRequest {
  const data = Buffer.from(bytes).toString("base64");
  return { document: 1, title: "A file", content: { kind: "base64", data, type } };
}

const W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"';

/** A DOCX file with this XML as its body. */
export function docx(body: string): Uint8Array {
  const xml = `<w:document ${W}><w:body>${body}</w:body></w:document>`;
  return zipSync({ "word/document.xml": new TextEncoder().encode(xml) });
}

/** A PDF file with one page that draws this content, and further objects from number 5 on. */
export function pdf(content: Uint8Array | string, filter = "", ...others: readonly string[]): Uint8Array {
  const font = "/Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >>";
  const objects: readonly Uint8Array[] = [
    "<< /Type /Catalog /Pages 2 0 R >>",
    "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
    `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << ${font} /XObject << /X 5 0 R >> >> >>`,
    Buffer.concat([
      Buffer.from(`<< ${filter} /Length ${content.length} >>\nstream\n`),
      Buffer.from(content),
      Buffer.from("\nendstream"),
    ]),
    ...others,
  ].map((object) => Buffer.from(object));
  const offsets: number[] = [];
  let file = Buffer.from("%PDF-1.4\n");
  for (const [index, object] of objects.entries()) {
    offsets.push(file.length);
    file = Buffer.concat([file, Buffer.from(`${index + 1} 0 obj\n`), object, Buffer.from("\nendobj\n")]);
  }
  const table = offsets.map((offset) => `${String(offset).padStart(10, "0")} 00000 n \n`).join("");
  const trailer = `trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${file.length}\n%%EOF\n`;
  return Buffer.concat([
    file,
    Buffer.from(`xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${table}`),
    Buffer.from(trailer),
  ]);
}

/** This many MiB of one byte, compressed twice: a gigabyte takes a few kilobytes. */
export function bomb(mebibytes: number, byte = 0x20): Uint8Array {
  return deflateSync(blocks(mebibytes, byte));
}

/** One deflate stream, made block by block, so this process never holds what it expands to. */
function blocks(mebibytes: number, byte: number): Uint8Array {
  // A raw stream can be repeated after a full flush. The last block ends it, and a checksum follows.
  const block = deflateRawSync(Buffer.alloc(MIB, byte), { finishFlush: 3 });
  const parts = [Buffer.from([0x78, 0x9c]), ...Array.from({ length: mebibytes }, () => block)];
  return Buffer.concat([...parts, Buffer.from([0x03, 0x00]), adler(mebibytes, byte)]);
}

/** Adler-32 of one repeated byte (RFC 1950). */
function adler(mebibytes: number, byte: number): Buffer {
  const count = BigInt(mebibytes) * BigInt(MIB);
  const value = BigInt(byte);
  const prime = 65_521n;
  const a = (1n + count * value) % prime;
  const b = (count + (value * count * (count + 1n)) / 2n) % prime;
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(Number(b * 65_536n + a));
  return bytes;
}

/** A page that takes longer to draw than any test may run: forms that draw each other, eight times each. */
export function endlessPdf(): Uint8Array {
  const form = (next: number) => {
    const draws = `${"/X Do ".repeat(8)}BT /F1 1 Tf (a) Tj ET`;
    return `<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X ${next} 0 R >> >> /Length ${draws.length} >>\nstream\n${draws}\nendstream`;
  };
  const forms = Array.from({ length: 40 }, (_, index) => form(index + 6));
  const last = "<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Length 5 >>\nstream\nq Q q\nendstream";
  return pdf("/X Do", "", ...forms, last);
}
