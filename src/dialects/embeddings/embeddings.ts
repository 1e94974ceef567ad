import { invalidField } from "../../base/errors.ts";
import type { DialectApi, DialectRequest } from "../dialect.ts";
import { field, isErrorAnswer, parsedOrNothing } from "../json.ts";
import { openAiError, openAiErrorEvent } from "../openai-errors.ts";
import { edited, findMembers, MemberNames } from "../request-bytes.ts";
import { EMBEDDINGS_TRANSLATION } from "./translation.ts";
import { describeVectors, embeddingsUsage, inFormat, type VectorFormat } from "./vectors.ts";

/** Maximum number of characters of an answer that is parsed to see whether it is an error. */
const LONGEST_ERROR = 64 * 1024;
const MEMBERS = new MemberNames(["model", "encoding_format"]);

/** OpenAI's Embeddings. */
export const EMBEDDINGS: DialectApi = {
  dialect: "embeddings",
  answersInTokens: false,
  vectors: EMBEDDINGS_TRANSLATION,
  read: readEmbeddingsRequest,
  summarize(answer) {
    const reported = embeddingsUsage(answer);
    // Only a short answer without usage is parsed: it may be an error.
    const isError =
      reported === null && answer.length <= LONGEST_ERROR && isErrorAnswer(parsedOrNothing(answer));
    return { isError, reported, textBytes: undefined };
  },
  passedHeaders: () => ({}),
  errorBody: openAiError,
  errorEvent: openAiErrorEvent,
};

/**
 * Size in bytes of the texts to convert. They all count as text, however much they look like data: none is a file.
 */
function inputBytesOf(input: unknown): number {
  if (typeof input === "string") return Buffer.byteLength(input);
  if (!Array.isArray(input)) return 0;
  // A client may send token ids instead of text. Each token has at least one byte.
  return input.reduce((sum: number, each) => sum + (typeof each === "number" ? 1 : inputBytesOf(each)), 0);
}

/** @throws Problem 400 `invalid_json`, 422 `validation_failed` */
function readEmbeddingsRequest(bytes: Uint8Array, value: unknown): DialectRequest {
  const { spans } = findMembers(bytes, MEMBERS);
  const model = field(value, "model");
  const named = spans.get("model");
  if (typeof model !== "string" || !named) throw invalidField("/model", "must be the name of a model");
  const given = field(value, "encoding_format") ?? "float";
  if (given !== "float" && given !== "base64") {
    throw invalidField("/encoding_format", "must be float or base64");
  }
  const format: VectorFormat = given;
  const inputBytes = inputBytesOf(field(value, "input"));
  return {
    model,
    isStream: false,
    size: { bytes: bytes.length, contentBytes: inputBytes, textBytes: inputBytes, answers: 1, mostTokens: 0 },
    bytesFor: (name) => edited(bytes, [{ ...named, text: JSON.stringify(name) }]),
    readStream: () => {
      throw new Error("embeddings are never streamed");
    },
    answer: (received) => inFormat(received, format),
    evidence: describeVectors,
  };
}
