import { APICallError, LoadAPIKeyError } from "@ai-sdk/provider";
import { describeFailure } from "../../agents/model/failure.ts";

/** A failed call for embeddings. The message is safe to show: it contains none of the upstream's text. */
export class EmbeddingFailed extends Error {
  override readonly name = "EmbeddingFailed";
  /**
   * `timeout`, `connection`, `cut`, `rate_limited`, `http_<status>`, `no_key`, `busy`, `invalid_answer`,
   * `answer_too_large`, `dimensions`, `empty_text`, `text_refused`, or `error`.
   */
  readonly reason: string;
  /**
   * Whether the same call may succeed later without a change. If false and `text` is not set, the key, the model or
   * the provider must be changed first.
   */
  readonly retryable: boolean;
  /** Index of the text that caused the failure. The others may succeed without it. */
  readonly text: number | undefined;
  /** The pause in milliseconds that the provider requested. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, fault: EmbeddingFault) {
    super(message);
    this.reason = fault.reason;
    this.retryable = fault.retryable;
    this.text = fault.text;
    this.retryAfterMs = fault.retryAfterMs;
  }
}

export interface EmbeddingFault {
  readonly reason: string;
  readonly retryable: boolean;
  readonly text?: number;
  readonly retryAfterMs?: number;
}

/** A classified failure of one request. */
export interface RequestFault extends EmbeddingFault {
  /** Whether the provider refused these particular texts: fewer or shorter ones may succeed. */
  readonly refused: boolean;
}

const PASSING = new Set(["timeout", "connection", "cut", "rate_limited"]);
const REFUSALS = new Set([400, 413, 422]);
/** llama.cpp and similar servers return 500 for a text that does not fit: ggml-org/llama.cpp#7389. */
const TOO_LONG = /too (?:large|long)|context (?:length|size|window)|physical batch size/i;
/** The maximum number of characters of an error's body that are examined. */
const READ_CHARACTERS = 2_000;

/**
 * Classifies an error thrown by a provider.
 * @param now Milliseconds since the Unix epoch, for a `Retry-After` that is a date
 */
export function faultOf(error: unknown, now: number): RequestFault {
  if (LoadAPIKeyError.isInstance(error)) return { reason: "no_key", retryable: false, refused: false };
  const { reason } = describeFailure(error);
  if (!APICallError.isInstance(error)) return { reason, retryable: PASSING.has(reason), refused: false };
  const status = error.statusCode ?? 0;
  // The SDK's error for a response that it could not read.
  if ((reason === "error" || reason === "answer_too_large") && status < 300)
    return { reason: "invalid_answer", retryable: false, refused: false };
  const tooLong = status === 500 && TOO_LONG.test(error.responseBody?.slice(0, READ_CHARACTERS) ?? "");
  const retryAfterMs = retryAfter(error.responseHeaders ?? {}, now);
  return {
    reason,
    retryable: PASSING.has(reason) || (status >= 500 && !tooLong),
    refused: REFUSALS.has(status) || tooLong,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  };
}

/**
 * The pause in milliseconds from `Retry-After` (RFC 9110, section 10.2.3: seconds or a date); undefined if there is
 * none.
 */
function retryAfter(headers: Readonly<Record<string, string>>, now: number): number | undefined {
  const text = headers["retry-after"]?.trim() ?? "";
  if (text === "") return undefined;
  const ms = /^\d+(?:\.\d+)?$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - now;
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined;
}

/**
 * Turns a classified failure into an error for the caller.
 * @param model `<provider>/<model>`
 * @param words what the model did, if that is more specific
 */
export function embeddingFailed(
  model: string,
  fault: EmbeddingFault,
  words: string = sentence(fault),
): EmbeddingFailed {
  return new EmbeddingFailed(`The embedding model ${model} ${words}.`, fault);
}

function sentence({ reason, text }: EmbeddingFault): string {
  switch (reason) {
    case "timeout":
      return "did not answer in time";
    case "connection":
    case "cut":
      return "could not be reached or closed the connection";
    case "rate_limited":
      return "accepts no more requests at the moment";
    case "invalid_answer":
      return "sent an answer that does not match the API";
    case "no_key":
      return "has no key: set its provider's api_key";
    case "http_401":
    case "http_403":
      return `refused the key (${reason.slice(5)})`;
    case "http_404":
      return "was not found (404)";
    case "text_refused":
      return `refuses text ${text}, even if it is shortened`;
    case "empty_text":
      return `was given an empty text (number ${text})`;
    case "busy":
      return "has too many calls waiting";
    default:
      return reason.startsWith("http_") ? `answered with status ${reason.slice(5)}` : "failed";
  }
}
