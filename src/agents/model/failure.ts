import { APICallError } from "@ai-sdk/provider";
import { field } from "../../base/json.ts";
import { JsonTooLarge } from "../../base/json-limits.ts";
import { AnswerTooLarge } from "../errors.ts";

/** A failed model call in words that are safe to show. They contain none of the upstream's text. */
export interface ModelFailure {
  readonly reason: string;
  /** Whether another model may succeed. */
  readonly retryable: boolean;
}

const TIMEOUT: ModelFailure = { reason: "timeout", retryable: true };
const CONNECTION: ModelFailure = { reason: "connection", retryable: true };
/** The stream ended before the answer was complete. */
export const CUT: ModelFailure = { reason: "cut", retryable: true };
/** The model itself reported that it was interrupted. */
export const INTERRUPTED: ModelFailure = { reason: "interrupted", retryable: true };
/** The model itself reported that it failed. */
export const MODEL_ERROR: ModelFailure = { reason: "error", retryable: true };
const ANSWER_TOO_LARGE: ModelFailure = { reason: "answer_too_large", retryable: true };

const RETRYABLE_4XX = new Set([401, 403, 404, 408, 409, 425, 429]);
const TIMEOUT_CODES = new Set([
  "ETIMEDOUT",
  "UND_ERR_HEADERS_TIMEOUT",
  "UND_ERR_BODY_TIMEOUT",
  "UND_ERR_CONNECT_TIMEOUT",
]);
const CONNECTION_CODES = new Set([
  "ConnectionRefused",
  "ConnectionClosed",
  "ConnectionReset",
  "FailedToOpenSocket",
  "ECONNRESET",
  "ECONNREFUSED",
  "ECONNABORTED",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EPIPE",
  "UND_ERR_SOCKET",
]);
/** Chains of causes are short; the limit also ends cyclic ones. */
const CAUSE_DEPTH = 8;

/**
 * Whether to try the next model after this error of a provider. 400, 413, 422 and other 4xx are caused by the request
 * and would occur with any model. 401, 403 and 404 only mean that this model is unavailable.
 */
export function isRetryable(error: unknown): boolean {
  return describeFailure(error).retryable;
}

/** Classifies an error that a provider threw or streamed. Unknown errors are retryable, with reason `error`. */
export function describeFailure(error: unknown): ModelFailure {
  const status = statusOf(error);
  if (status !== undefined) return byStatus(status);
  for (const link of causes(error)) {
    if (link instanceof AnswerTooLarge || link instanceof JsonTooLarge) return ANSWER_TOO_LARGE;
    const code = field(link, "code");
    const name = field(link, "name");
    if (name === "TimeoutError" || (typeof code === "string" && TIMEOUT_CODES.has(code))) return TIMEOUT;
    if (name === "AbortError" || (typeof code === "string" && CONNECTION_CODES.has(code))) return CONNECTION;
    // The AI SDK's representation of a stream that ended early: an invalid response without data.
    if (name === "AI_InvalidResponseDataError" && field(link, "data") === undefined) return CUT;
  }
  // Without a status there was no response: the provider could not be reached.
  if (APICallError.isInstance(error) && error.statusCode === undefined) return CONNECTION;
  return MODEL_ERROR;
}

function byStatus(status: number): ModelFailure {
  if (status === 408 || status === 504) return TIMEOUT;
  if (status === 429) return { reason: "rate_limited", retryable: true };
  return { reason: `http_${status}`, retryable: status >= 500 || RETRYABLE_4XX.has(status) };
}

/** The HTTP status of an error response. Errors inside a stream carry it as `status` or a numeric `code`. */
function statusOf(error: unknown): number | undefined {
  for (const name of ["statusCode", "status", "code"]) {
    const value = field(error, name);
    if (typeof value === "number" && Number.isInteger(value) && value >= 400 && value <= 599) return value;
  }
  return undefined;
}

function causes(error: unknown): readonly unknown[] {
  const found: unknown[] = [];
  for (let link = error; link !== undefined && found.length < CAUSE_DEPTH; link = field(link, "cause")) {
    found.push(link);
  }
  return found;
}
