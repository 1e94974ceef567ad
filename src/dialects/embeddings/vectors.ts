import type { LanguageModelV4Usage } from "@ai-sdk/provider";
import { AnswerTooLarge } from "../../agents/index.ts";
import { parseJson } from "../../base/json-limits.ts";
import { chatUsage } from "../chat/usage.ts";
import { field, parsedOrNothing } from "../json.ts";

/** How a client wants its vectors: as lists of numbers, or as base64 of 32-bit floats, little-endian. */
export type VectorFormat = "float" | "base64";

const USAGE = '"usage"';
/** Everything in an answer except its vectors is within this many bytes of either end. */
const ENDS = 4_096;
const FLOAT_BYTES = 4;
/** The maximum number of bytes that are converted. */
const MOST_CONVERTED = 16 * 1024 * 1024;
/** The maximum number of numbers in them, in either format. Converting that many takes about 0.2 s. */
const MOST_NUMBERS = 1_000_000;
/** The maximum number of strings, lists and objects in them. A vector has four strings and two lists or objects. */
const MOST_PARTS = 50_000;
const LIMITS = { members: MOST_NUMBERS, strings: MOST_PARTS, containers: MOST_PARTS };
/** Base64 has four characters for three bytes. */
const NUMBERS_PER_CHARACTER = 3 / 4 / FLOAT_BYTES;
const FIRST_LIST = /"embedding"\s*:\s*\[/;
const FIRST_TEXT = /"embedding"\s*:\s*"/;

/**
 * The usage of an answer. It is found by searching, since megabytes of vectors precede it: parsing 60 MB of numbers
 * would block every other call for more than half a second.
 */
export function embeddingsUsage(answer: string): LanguageModelV4Usage | null {
  for (const end of [answer.slice(-ENDS), answer.slice(0, ENDS)]) {
    const at = end.lastIndexOf(USAGE);
    const open = end.indexOf("{", at);
    const close = end.indexOf("}", open);
    if (at < 0 || open < 0 || close < 0) continue;
    const found = chatUsage(parsedOrNothing(end.slice(open, close + 1)));
    if (found === null) continue;
    // Embeddings have no output.
    return { ...found, outputTokens: { total: 0, text: 0, reasoning: 0 } };
  }
  return null;
}

/**
 * The answer in the format that the client requested: as received, unless the server ignored that format. Most
 * clients request base64, which not every server supports.
 * @throws AnswerTooLarge, JsonTooLarge, SyntaxError if it cannot be converted
 */
export function inFormat(received: Buffer<ArrayBuffer>, format: VectorFormat): Buffer<ArrayBuffer> {
  const head = received.subarray(0, ENDS).toString();
  const isOther = format === "base64" ? FIRST_LIST.test(head) : FIRST_TEXT.test(head);
  if (!isOther) return received;
  if (received.length > MOST_CONVERTED) {
    throw tooMany();
  }
  const answer = parseJson(received.toString(), LIMITS);
  const data = field(answer, "data");
  if (!Array.isArray(data)) return received;
  let characters = 0;
  for (const each of data) {
    const vector = field(each, "embedding");
    if (typeof vector === "string") characters += vector.length;
  }
  if (data.length > MOST_PARTS || characters * NUMBERS_PER_CHARACTER > MOST_NUMBERS) throw tooMany();
  const convert = format === "base64" ? toBase64 : toNumbers;
  const converted = data.map((each: object) => ({ ...each, embedding: convert(field(each, "embedding")) }));
  return Buffer.from(JSON.stringify({ ...(answer as object), data: converted }));
}

function tooMany(): AnswerTooLarge {
  return new AnswerTooLarge(
    "The model's vectors came in a format that was not requested, and there are too many to convert.",
  );
}

export function toBase64(vector: unknown): unknown {
  if (!Array.isArray(vector)) return vector;
  const bytes = Buffer.alloc(vector.length * FLOAT_BYTES);
  for (const [index, value] of vector.entries()) bytes.writeFloatLE(Number(value), index * FLOAT_BYTES);
  return bytes.toString("base64");
}

function toNumbers(vector: unknown): unknown {
  if (typeof vector !== "string") return vector;
  const bytes = Buffer.from(vector, "base64");
  const count = Math.floor(bytes.length / FLOAT_BYTES);
  return Array.from({ length: count }, (_, index) => bytes.readFloatLE(index * FLOAT_BYTES));
}

/** A provider embeds at most 2,048 texts per request. Counting millions of matches would delay every other call. */
const MOST_COUNTED = 100_000;

/** The evidence of an answer. Vectors are left out: they take megabytes and mean nothing to a reader. */
export function describeVectors(answer: string): string {
  let vectors = 0;
  let found = 0;
  for (let at = answer.indexOf('"embedding"'); at >= 0; at = answer.indexOf('"embedding"', at + 1)) {
    if (++found > MOST_COUNTED) return JSON.stringify({ vectors, more: true });
    // Some servers also give each item the type `embedding`.
    if (/^"embedding"\s*:/.test(answer.slice(at, at + 32))) vectors++;
  }
  return JSON.stringify({ vectors });
}
