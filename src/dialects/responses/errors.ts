import type { Problem } from "../../base/errors.ts";
import { openAiError } from "../openai-errors.ts";

/** The part of a stream that was sent before it broke. */
export interface BrokenStream {
  readonly requestId: string;
  /** The next `sequence_number`. */
  readonly sequence: number;
  /** The response so far. */
  readonly received: object;
}

/**
 * The events that end a broken stream. There are two because clients differ: most throw on the first if its data has
 * an `error`, and Codex shows only the message of the second.
 */
export function failureEvents(problem: Problem, { requestId, sequence, received }: BrokenStream): string {
  const { error } = openAiError(problem);
  const { code, message, param } = error;
  const first = { type: "error", sequence_number: sequence, code, message, param, error };
  const response = {
    id: `resp_${requestId.slice(requestId.indexOf("_") + 1)}`,
    object: "response",
    created_at: 0,
    model: "",
    output: [],
    ...received,
    status: "failed",
    // One of the codes that OpenAI's clients know.
    error: { code: "server_error", message },
    incomplete_details: null,
  };
  const second = { type: "response.failed", sequence_number: sequence + 1, response };
  return [first, second].map((data) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`).join("");
}
