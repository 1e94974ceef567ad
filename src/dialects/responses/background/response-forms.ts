import { field, isMembers, type Members } from "../../json.ts";
import type { ResponseRow } from "../stored/rows.ts";
import { responseForm } from "../translation/response-form.ts";
import type { UnansweredEnd } from "./open-response.ts";

type KnownRow = Pick<ResponseRow, "id" | "model" | "createdAt">;

/** The state of a response that has no answer yet, or never will. */
export type UnansweredState =
  | UnansweredEnd
  | { readonly status: "queued" | "in_progress"; readonly error: null };

export const QUEUED: UnansweredState = { status: "queued", error: null };

/** The first event of a stream repeats the members of its request whose JSON has at most this many characters. */
const SHORT = 1_024;

/** A background response without an answer. @param request the parsed request */
export function unansweredResponse(request: unknown, row: KnownRow, state: UnansweredState): Members {
  return formOf(isMembers(request) ? { ...request, stream: false } : {}, row, state);
}

/**
 * The response in the first event of a stream. Leaves out long members, because each of many readers may hold a copy.
 */
export function createdResponse(request: unknown, row: KnownRow): Members {
  const members = isMembers(request) ? Object.entries(request) : [];
  const short = members.filter(([, value]) => JSON.stringify(value).length <= SHORT);
  return formOf({ ...Object.fromEntries(short), stream: true }, row, QUEUED);
}

function formOf(request: Members, { id, model, createdAt }: KnownRow, state: UnansweredState): Members {
  const form = responseForm(request, { id: "", model, created: Math.floor(createdAt / 1_000) });
  return { ...form, id, background: true, ...state, output: [], usage: null };
}

/** Turns a provider's response into a background response, which has Gatehouse's own id. */
export function inBackground(
  response: Members,
  request: unknown,
  { id, createdAt }: Pick<KnownRow, "id" | "createdAt">,
): Members {
  return {
    ...response,
    ...{ id, background: true, store: true, created_at: Math.floor(createdAt / 1_000) },
    // The provider may have been sent the whole conversation instead of this id.
    previous_response_id: field(request, "previous_response_id") ?? null,
  };
}
