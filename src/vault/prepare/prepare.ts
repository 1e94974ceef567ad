import type { PreparedDocument, PreparedPassage, PrepareRequest, SegmentBytes } from "../messages.ts";
import { readBytes, readText, UnreadableDocument } from "../read/read.ts";
import { keyOf, PER_DOCUMENT } from "../rows/keys.ts";
import { pagesOf } from "../rows/pages.ts";
import type { PassageTerms } from "../segments/segment.ts";
import { encodeSegment } from "../segments/segment-writer.ts";
import { embeddedText } from "../terms/embedded-text.ts";
import { LEXICAL_DIMENSIONS } from "../terms/lexical.ts";
import { wordsOf } from "../terms/words.ts";
import { analysePassage } from "./analyse.ts";
import { chunkDocument } from "./chunk.ts";

/** Passages in each segment of a new document. Each segment is written in its own transaction. */
const SEGMENT_PASSAGES = 256;
const HASH_BYTES = 16;

/**
 * Reads a document, cuts it into passages and builds their index: all the expensive work of writing one, in a worker.
 * @throws UnreadableDocument
 */
export async function prepareDocument(request: PrepareRequest): Promise<PreparedDocument> {
  const { content, title } = request;
  const given = content.kind === "text" ? content.text : decode(content.data);
  const read =
    typeof given === "string" ? await readText(given, content.type) : await readBytes(given, content.type);
  const chunks = chunkDocument(read);
  if (chunks.length > PER_DOCUMENT) {
    throw new UnreadableDocument(
      content.kind === "text" ? "/text" : "/content_base64",
      `has ${chunks.length} passages; the limit is ${PER_DOCUMENT}`,
    );
  }
  const titleWords = wordsOf(title);
  const vectors = new Float32Array(chunks.length * LEXICAL_DIMENSIONS);
  const passages: PreparedPassage[] = [];
  const segments: SegmentBytes[] = [];
  let waiting: PassageTerms[] = [];
  for (const [place, { start, end, headings }] of chunks.entries()) {
    const text = read.text.slice(start, end);
    const analysed = analysePassage(keyOf(request.document, place), titleWords, headings, text);
    if (analysed.vector) vectors.set(analysed.vector, place * LEXICAL_DIMENSIONS);
    passages.push({ start, end, hash: hashOf(embeddedText(title, text)) });
    waiting.push(analysed);
    if (waiting.length === SEGMENT_PASSAGES || place === chunks.length - 1) {
      segments.push({ passages: waiting.length, bytes: encodeSegment(waiting) });
      waiting = [];
    }
  }
  return {
    contentHash: new Uint8Array(new Bun.CryptoHasher("sha256").update(given).digest()),
    characters: read.text.length,
    pages: pagesOf(read.text),
    passages,
    segments,
    vectors,
  };
}

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

/** Accepts line breaks, as MIME has them (RFC 2045), and missing `=` padding, but not a missing digit. */
function decode(data: string): Uint8Array {
  // White space is removed first: the pattern would match it in two places, in quadratic time.
  const digits = data.replace(/\s+/g, "");
  const isPadded = digits.endsWith("=");
  if (!BASE64.test(digits) || (isPadded ? digits.length % 4 !== 0 : digits.length % 4 === 1)) {
    throw new UnreadableDocument("/content_base64", "is not valid base64");
  }
  return Buffer.from(digits, "base64");
}

function hashOf(text: string): Uint8Array {
  return new Uint8Array(new Bun.CryptoHasher("sha256").update(text).digest().subarray(0, HASH_BYTES));
}
