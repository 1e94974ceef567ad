import type { Problem } from "../../base/errors.ts";
import { anthropicError } from "../../dialects/anthropic-errors.ts";
import { openAiError } from "../../dialects/openai-errors.ts";
import type { ErrorForm } from "../docs/error-forms.ts";
import { problemResponse } from "./answer.ts";

/** The form in which existing clients expect errors. */
export interface ClientForm {
  /** Its name in the OpenAPI document. */
  readonly errors: ErrorForm;
  /** Browsers call it too, so a session's cookie also counts. */
  readonly browsers?: true;
  problemResponse(
    problem: Problem,
    headers: Record<string, string>,
    requestId: string,
    request: Request,
  ): Response;
}

/** The statuses after which OpenAI's and Anthropic's SDKs would otherwise retry, with the same outcome. */
const FINAL_STATUSES: ReadonlySet<number> = new Set([402, 409]);

/** An error as the SDKs of OpenAI and Anthropic read it. */
export function clientForm(
  errors: ErrorForm,
  bodyOf: (problem: Problem, requestId: string) => object,
): ClientForm {
  return {
    errors,
    problemResponse(problem, headers, requestId) {
      const { status } = problem;
      return new Response(JSON.stringify(bodyOf(problem, requestId)), {
        status,
        headers: {
          ...headers,
          ...problem.headers,
          ...(FINAL_STATUSES.has(status) ? { "x-should-retry": "false" } : {}),
          "gatehouse-code": problem.code,
          "content-type": "application/json",
        },
      });
    },
  };
}

const ANTHROPIC = clientForm("AnthropicError", anthropicError);
const OPENAI = clientForm("OpenAiError", openAiError);

/**
 * For endpoints that all clients call. Each gets errors in the form that it reads, which its headers reveal: all of
 * Anthropic's SDKs send `anthropic-version`, all of OpenAI's send `x-stainless-lang`. Any other client may use the
 * REST API, and reads problem details (RFC 9457).
 */
export const ANY_CLIENT: ClientForm = {
  errors: "ClientError",
  browsers: true,
  problemResponse(problem, headers, requestId, request) {
    const isAnthropic = request.headers.has("anthropic-version");
    const form = isAnthropic ? ANTHROPIC : request.headers.has("x-stainless-lang") ? OPENAI : null;
    if (form) return form.problemResponse(problem, headers, requestId, request);
    return problemResponse(problem, { ...headers, "gatehouse-code": problem.code }, requestId);
  },
};

/** The request's id under the names that the SDKs of OpenAI and Anthropic read. */
export function clientHeaders(requestId: string): Record<string, string> {
  return { "x-request-id": requestId, "request-id": requestId };
}
