import { field, isMembers, type Members } from "../../json.ts";
import type { ResponseRow } from "../stored/rows.ts";
import { responseForm } from "../translation/response-form.ts";

/** Why a response in the background has no answer. */
export interface ResponseFailure {
  readonly code: string;
  readonly message: string;
}

type KnownRow = Pick<ResponseRow, "id" | "model" | "createdAt">;

/** A response in the background without an answer: not yet, or never. @param request the parsed request */
export function unansweredResponse(
  request: unknown,
  row: KnownRow,
  state: {
    readonly status: "queued" | "in_progress" | "failed" | "cancelled";
    readonly error: ResponseFailure | null;
  },
): Members {
  const { id, model, createdAt } = row;
  const head = { id: "", model, created: Math.floor(createdAt / 1_000) };
  const whole = isMembers(request) ? { ...request, stream: false } : {};
  const form = responseForm(whole, head);
  return { ...form, id, background: true, ...state, output: [], usage: null };
}

/** A response of a provider as a response in the background, which has an id of our own. */
export function inBackground(
  response: Members,
  request: unknown,
  { id, createdAt }: Pick<KnownRow, "id" | "createdAt">,
): Members {
  return {
    ...response,
    ...{ id, background: true, store: true, created_at: Math.floor(createdAt / 1_000) },
    // The provider may have been sent the conversation instead.
    previous_response_id: field(request, "previous_response_id") ?? null,
  };
}
