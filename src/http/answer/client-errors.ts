import type { Problem } from "../../base/errors.ts";

/** The form in which existing clients expect errors. */
export interface ClientForm {
  problemResponse(problem: Problem, headers: Record<string, string>, requestId: string): Response;
}

/** The statuses that the SDKs of OpenAI and Anthropic would otherwise repeat, although nothing will have changed. */
const FINAL_STATUSES: ReadonlySet<number> = new Set([402, 409]);

/** An error as the SDKs of OpenAI and Anthropic read it. */
export function clientForm(bodyOf: (problem: Problem, requestId: string) => object): ClientForm {
  return {
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

/** The request's id under the names that the SDKs of OpenAI and Anthropic read. */
export function clientHeaders(requestId: string): Record<string, string> {
  return { "x-request-id": requestId, "request-id": requestId };
}
