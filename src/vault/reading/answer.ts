import Type, { type Static } from "typebox";
import { validator } from "../../base/schema.ts";
import { BrokenFrame } from "../../reading/frames.ts";
import { FAILURE, type ReadingAnswer } from "../../reading/protocol.ts";
import type { PreparedDocument, PreparedPassage } from "../messages.ts";

/**
 * The answer of a reading process, as frames: one that announces the others, then each page of the text, the
 * passages, each segment of the index, and the vectors. A failure is a single frame. Frames are read as they arrive,
 * so a long document does not block the requesting process.
 */
const Count = Type.Integer({ minimum: 0, maximum: 1_000_000 });
const Head = Type.Object(
  {
    contentHash: Type.String({ pattern: "^[0-9a-f]{64}$" }),
    characters: Type.Integer({ minimum: 0 }),
    pages: Count,
    /** Number of passages in each segment. */
    segments: Type.Array(Count),
    isLast: Type.Boolean(),
  },
  { additionalProperties: false },
);
const head = validator(Head);
const failure = validator(FAILURE);

/** A passage has a start, an end and its hash. */
const HASH_BYTES = 16;
const PASSAGE_BYTES = 8 + HASH_BYTES;
const NUMBER_BYTES = 4;

/** The bodies of the answer's frames, each created on demand. */
export function* encodeAnswer(answer: ReadingAnswer<PreparedDocument>): Generator<Uint8Array> {
  if ("failure" in answer) {
    yield Buffer.from(JSON.stringify(answer));
    return;
  }
  const { result, isLast } = answer;
  const { characters, pages, passages, segments, vectors } = result;
  const first: Static<typeof Head> = {
    contentHash: Buffer.from(result.contentHash).toString("hex"),
    characters,
    pages: pages.length,
    segments: segments.map((segment) => segment.passages),
    isLast,
  };
  yield Buffer.from(JSON.stringify(first));
  for (const page of pages) {
    const start = Buffer.alloc(NUMBER_BYTES);
    start.writeUInt32LE(page.start);
    yield Buffer.concat([start, Buffer.from(page.text)]);
  }
  yield encodePassages(passages);
  for (const { bytes } of segments) yield bytes;
  yield new Uint8Array(vectors.buffer, vectors.byteOffset, vectors.byteLength);
}

/** Assembles one answer from its frames. */
export class AnswerReader {
  readonly #pages: { start: number; text: string }[] = [];
  readonly #segments: { passages: number; bytes: Uint8Array }[] = [];
  #head: Static<typeof Head> | null = null;
  #passages: readonly PreparedPassage[] | null = null;

  /** Returns the whole answer at its last frame, otherwise undefined. @throws BrokenFrame */
  push(body: Uint8Array): ReadingAnswer<PreparedDocument> | undefined {
    const known = this.#head;
    if (known === null) return this.#begin(body);
    if (this.#pages.length < known.pages) {
      this.#pages.push(decodePage(body));
    } else if (this.#passages === null) {
      this.#passages = decodePassages(body);
    } else if (this.#segments.length < known.segments.length) {
      this.#segments.push({ passages: known.segments[this.#segments.length] ?? 0, bytes: body });
    } else {
      const result = {
        contentHash: Buffer.from(known.contentHash, "hex"),
        characters: known.characters,
        pages: this.#pages,
        passages: this.#passages,
        segments: this.#segments,
        vectors: new Float32Array(body.buffer, body.byteOffset, Math.floor(body.length / NUMBER_BYTES)),
      };
      return { result, isLast: known.isLast };
    }
    return undefined;
  }

  #begin(body: Uint8Array): ReadingAnswer<PreparedDocument> | undefined {
    const value: unknown = JSON.parse(new TextDecoder().decode(body));
    if (failure.is(value)) return value;
    if (!head.is(value)) throw new BrokenFrame("an answer without a head");
    this.#head = value;
    return undefined;
  }
}

function encodePassages(passages: readonly PreparedPassage[]): Uint8Array {
  const bytes = Buffer.alloc(passages.length * PASSAGE_BYTES);
  for (const [place, { start, end, hash }] of passages.entries()) {
    const at = place * PASSAGE_BYTES;
    bytes.writeUInt32LE(start, at);
    bytes.writeUInt32LE(end, at + NUMBER_BYTES);
    bytes.set(hash, at + 2 * NUMBER_BYTES);
  }
  return bytes;
}

function decodePassages(body: Uint8Array): PreparedPassage[] {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.length);
  const passages: PreparedPassage[] = [];
  for (let at = 0; at + PASSAGE_BYTES <= bytes.length; at += PASSAGE_BYTES) {
    const [start, end] = [bytes.readUInt32LE(at), bytes.readUInt32LE(at + NUMBER_BYTES)];
    passages.push({ start, end, hash: bytes.subarray(at + 2 * NUMBER_BYTES, at + PASSAGE_BYTES) });
  }
  return passages;
}

function decodePage(body: Uint8Array): { start: number; text: string } {
  if (body.length < NUMBER_BYTES) throw new BrokenFrame("a page without a start");
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.length);
  return { start: bytes.readUInt32LE(0), text: bytes.toString("utf8", NUMBER_BYTES) };
}
