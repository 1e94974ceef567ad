import { checkLength } from "./builder.ts";
import { readCsv } from "./csv.ts";
import type { ContentType, ReadDocument } from "./document.ts";
import { readDocx } from "./docx/docx.ts";
import { Fault, UnreadableDocument } from "./fault.ts";
import { readHtml } from "./html.ts";
import { readJson } from "./json.ts";
import { readMarkdown } from "./markdown.ts";
import { decodeText, parseContentType } from "./media-type.ts";
import { readPdf } from "./pdf.ts";
import { plainBlocks } from "./plain.ts";

export { UnreadableDocument } from "./fault.ts";

/** Readers of textual types. The types missing here are read from bytes. */
const TEXTS: Partial<Record<ContentType, (text: string) => ReadDocument>> = {
  "text/plain": (text) => ({ text, blocks: plainBlocks(text) }),
  "text/markdown": readMarkdown,
  "text/html": (text) => readHtml(text),
  "application/xhtml+xml": (text) => readHtml(text, { xhtml: true }),
  "text/csv": readCsv,
  "application/json": readJson,
};

/** Stored exactly as received. */
const EXACT: readonly ContentType[] = ["text/plain", "text/markdown"];

/**
 * Reads a document received as text. Plain text and Markdown are stored unchanged (lone surrogates replaced); for
 * HTML, CSV and JSON, the text read from them is stored.
 * @throws UnreadableDocument
 */
export async function readText(text: string, contentType = "text/plain"): Promise<ReadDocument> {
  const { type } = parseContentType(contentType);
  if (TEXTS[type] === undefined) {
    throw new UnreadableDocument(
      "/text",
      `can't contain a document of type "${type}": send its bytes in content_base64`,
    );
  }
  return inField("/text", () => fromText(text, type));
}

/**
 * Reads a document received as bytes, which are not modified.
 * @throws UnreadableDocument
 */
export async function readBytes(bytes: Uint8Array, contentType: string): Promise<ReadDocument> {
  const media = parseContentType(contentType);
  return inField("/content_base64", () => {
    if (bytes.length === 0) throw new Fault("is empty");
    if (media.type === "application/pdf") return readPdf(bytes);
    if (TEXTS[media.type] === undefined) return readDocx(bytes);
    return fromText(decodeText(bytes, media), media.type);
  });
}

function fromText(text: string, type: ContentType): ReadDocument {
  if (EXACT.includes(type)) {
    checkLength(text.length);
    // Text contains no NUL, but most files mistakenly declared as text do.
    const at = text.indexOf("\0");
    if (at !== -1) throw new Fault(`has a NUL character at offset ${at}: it is not text`);
  }
  const read = TEXTS[type];
  if (read === undefined) throw new Error(`no reader for ${type}`);
  return read(text.toWellFormed());
}

/** Runs a reader whose input came in `field`, and refuses documents without text. */
async function inField(
  field: string,
  read: () => ReadDocument | Promise<ReadDocument>,
): Promise<ReadDocument> {
  try {
    const document = await read();
    if (document.text.trim() === "") throw new Fault("contains no text");
    return document;
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    throw new UnreadableDocument(field, error.message, { cause: error.cause });
  }
}
