import { APICallError, UnsupportedFunctionalityError } from "@ai-sdk/provider";
import { describeFailure, type ModelFailure } from "../agents/model/failure.ts";
import { Problem } from "../base/errors.ts";
import { redact } from "../base/log.ts";
import type { DialectAnswer } from "./dialect-answer.ts";
import { field, parsedOrNothing } from "./json.ts";

/** Why one attempt failed. */
export interface AttemptFailure extends ModelFailure {
  /** Whether the provider had read the request, even if none of its answer was received. */
  readonly wasRead?: true;
  /** The error that the client receives if no other model is tried. */
  readonly problem: Problem;
}

/** The maximum number of bytes of an error that are read, and of characters of its message that are shown. */
const ERROR_BYTES = 64 * 1024;
const MESSAGE_LIMIT = 500;
/** The value of a Retry-After header, in seconds or as a date. */
const RETRY_AFTER = /^(?:\d{1,9}|[A-Z][a-z]{2}, [0-9A-Za-z: -]{1,40})$/;

/** Thrown when an answer reports that it is incomplete, or is an error although its status is 200. */
export class UnfinishedAnswer extends Error {
  override readonly name = "UnfinishedAnswer";
  readonly reason: string;

  constructor(reason: string) {
    super("The model did not finish its answer.");
    this.reason = reason;
  }
}

/**
 * The failure for an error that was thrown instead of an answer, or while reading one.
 * @param hide masks the provider's address and credentials in its message
 */
export function thrownFailure(error: unknown, hide: (text: string) => string): AttemptFailure {
  if (error instanceof Problem) {
    const { code } = error;
    const failure = { reason: code, retryable: true, problem: error };
    // This is found at the beginning of an answer. Anything found earlier is refused before there is an attempt.
    return code === "unsupported_parameter" ? { ...failure, wasRead: true } : failure;
  }
  if (error instanceof UnfinishedAnswer) return { reason: error.reason, retryable: true, problem: failed() };
  if (UnsupportedFunctionalityError.isInstance(error)) {
    return { reason: "unsupported", retryable: true, problem: notTaken(shown(error.functionality, hide)) };
  }
  const failure = describeFailure(error);
  if (!APICallError.isInstance(error)) return failureOf(failure, undefined, undefined, null);
  const { statusCode, responseHeaders, message } = error;
  return failureOf(failure, statusCode, responseHeaders?.["retry-after"], shown(message, hide));
}

/** The failure for an answer with an error status. Reads the error's message, in the form that all dialects share. */
export async function refusedFailure(answer: DialectAnswer): Promise<AttemptFailure> {
  const { status, headers } = answer;
  if (status < 400) {
    answer.end();
    return brokenFailure("error");
  }
  const failure = describeFailure({ status });
  if (failure.retryable) answer.end();
  const message = failure.retryable ? null : await messageOf(answer);
  return failureOf(failure, status, headers.get("retry-after") ?? undefined, message);
}

/** @param message the provider's error message, without secrets */
function failureOf(
  failure: ModelFailure,
  status: number | undefined,
  retryAfter: string | undefined,
  message: string | null,
): AttemptFailure {
  if (status === 429) {
    const given = retryAfter?.trim() ?? "";
    return { ...failure, problem: busy(RETRY_AFTER.test(given) ? given : undefined) };
  }
  if (!failure.retryable && status !== undefined) return { ...failure, problem: refused(status, message) };
  return { ...failure, problem: failure.reason === "timeout" ? timedOut() : failed() };
}

/** The answer ended too early, or the provider reported an error in the middle of it. */
export function brokenFailure(reason: "cut" | "error"): AttemptFailure {
  return { reason, retryable: true, problem: failed() };
}

function failed(): Problem {
  return new Problem("provider_failed", "The model's provider failed before the answer was complete.");
}

function timedOut(): Problem {
  return new Problem(
    "provider_timeout",
    "The model's provider sent nothing for as long as its timeout allows.",
  );
}

function busy(retryAfter: string | undefined): Problem {
  return new Problem("provider_busy", "The model's provider accepts no more requests at the moment.", {
    headers: retryAfter === undefined ? {} : { "Retry-After": retryAfter },
  });
}

function notTaken(functionality: string): Problem {
  return new Problem("unsupported_parameter", `The model's provider cannot take this: ${functionality}`);
}

function refused(status: number, message: string | null): Problem {
  const said = message === null ? "" : `: ${message}`;
  return new Problem(
    "provider_refused",
    `The model's provider refused the request with status ${status}${said}`,
  );
}

/** The provider's error message, without secrets; null if it has none. */
async function messageOf(answer: DialectAnswer): Promise<string | null> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  try {
    for (let part = await answer.read(); part && bytes < ERROR_BYTES; part = await answer.read()) {
      parts.push(part);
      bytes += part.length;
    }
    const body = parsedOrNothing(Buffer.concat(parts).toString());
    const error = field(body, "error");
    const message = field(error, "message") ?? field(body, "message") ?? error;
    return typeof message === "string" ? shown(message, answer.hide) : null;
  } catch {
    // The status has already shown that it failed, and an unreadable error adds nothing.
    return null;
  } finally {
    answer.end();
  }
}

function shown(message: string, hide: (text: string) => string): string {
  return redact(hide(message)).slice(0, MESSAGE_LIMIT);
}

/** The error after the last attempt: the last attempt's own, unless all attempts timed out. */
export function exhausted(failures: readonly AttemptFailure[]): Problem {
  const last = failures.at(-1);
  if (!last) throw new Error("a route without models was called");
  const isTimeout = last.problem.code === "provider_timeout";
  if (!isTimeout || failures.every(({ problem }) => problem.code === "provider_timeout")) return last.problem;
  return new Problem("provider_failed", "Each of the tier's models failed.");
}
