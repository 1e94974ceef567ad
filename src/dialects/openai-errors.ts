import type { Problem } from "../base/errors.ts";
import { redact } from "../base/log.ts";

/** The error's `type` in OpenAI's API. OpenAI's SDKs look only at the status. */
function typeOf({ status, code }: Problem): string {
  if (status === 401) return "authentication_error";
  if (status === 402) return "insufficient_quota";
  if (status === 403) return "permission_error";
  if (status === 409) return "conflict_error";
  if (status === 429) return "rate_limit_error";
  if (status >= 500 && code !== "loop_detected") return "server_error";
  return "invalid_request_error";
}

interface OpenAiError {
  readonly message: string;
  readonly type: string;
  readonly param: string | null;
  readonly code: string;
}

/** The body of an error in OpenAI's format. */
export function openAiError(problem: Problem): { readonly error: OpenAiError } {
  const param = problem.errors?.[0]?.path.slice(1).replaceAll("/", ".") ?? null;
  // Messages are redacted: one may quote the request, which may have a secret in the wrong place.
  const message = redact(problem.message);
  return { error: { message, type: typeOf(problem), param, code: problem.code } };
}

/** The event that ends a broken stream. No `[DONE]` follows, so no client mistakes the answer for a complete one. */
export function openAiErrorEvent(problem: Problem): string {
  return `data: ${JSON.stringify(openAiError(problem))}\n\n`;
}
