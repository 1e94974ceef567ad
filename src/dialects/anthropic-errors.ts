import type { Problem } from "../base/errors.ts";
import { redact } from "../base/log.ts";

/** The error's `type` in Anthropic's API. */
function typeOf({ status }: Problem): string {
  if (status === 401) return "authentication_error";
  if (status === 402) return "billing_error";
  if (status === 403) return "permission_error";
  if (status === 404) return "not_found_error";
  if (status === 409) return "conflict_error";
  if (status === 413) return "request_too_large";
  if (status === 429) return "rate_limit_error";
  if (status === 503) return "overloaded_error";
  if (status === 504) return "timeout_error";
  return status >= 500 ? "api_error" : "invalid_request_error";
}

/** The body of an error in Anthropic's format. */
export function anthropicError(problem: Problem, requestId: string): object {
  // Messages are redacted: one may quote the request, which may have a secret in the wrong place.
  const message = redact(problem.message);
  return { type: "error", error: { type: typeOf(problem), message }, request_id: requestId };
}
