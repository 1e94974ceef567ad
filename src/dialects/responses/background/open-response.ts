import { Problem } from "../../../base/errors.ts";
import type { Via } from "../../../base/via.ts";
import { CallInterruption } from "../../../gate/direct/running-calls.ts";
import type { EntryDraft } from "../../../ledger/entry.ts";
import type { ParsedEntry } from "../../../ledger/reading/parsed-entry.ts";
import type { Members } from "../../json.ts";
import type { ResponseFailure } from "./forms.ts";

/** The reason of a signal that a client has aborted by cancelling its response. */
export const CANCELLED = new Problem("client_closed", "The response was cancelled.");

/** A response in the background that has not ended. */
export interface OpenResponse {
  readonly workspaceId: number;
  readonly id: string;
  /** Null if it is not made as an agent. */
  readonly agentId: number | null;
  /** The entry that dispatched it. */
  readonly dispatchSeq: number;
  /** The Gatehouses that its request passed through; unknown after a restart. */
  readonly via: Via;
  /** Ends it. The reason is `CANCELLED` or a `CallInterruption`. */
  readonly abort: AbortController;
  /** Aborted when the process is about to stop: a later start begins the response. */
  readonly wait: AbortController;
  /** Resolves when its end is written or put off, or it is left to the next start. */
  readonly left: PromiseWithResolvers<void>;
  /** Whether its answer is on disk. */
  isAnswered: boolean;
  /** The response as it ended, while that cannot be written. */
  end: Members | null;
}

/** How a response ended without an answer. */
export interface ResponseEnd {
  readonly status: "failed" | "cancelled";
  readonly code: string | undefined;
  readonly error: ResponseFailure | null;
}

/** Whether a response is left to the next start. */
export function isShutdown({ reason }: AbortSignal): boolean {
  return reason instanceof CallInterruption && reason.reason === "shutdown";
}

/** How a response ends that was cancelled or stopped. */
export function endOfAborted({ reason }: AbortSignal, failure: ResponseFailure | null): ResponseEnd {
  if (!(reason instanceof CallInterruption)) return { status: "cancelled", code: undefined, error: null };
  const message = failure?.message ?? "The agent or its workspace was stopped.";
  return { status: "cancelled", code: reason.code, error: { code: reason.code, message } };
}

/** The outcome of the entry that dispatched a response. */
export function endDraft(
  entry: ParsedEntry,
  { id, dispatchSeq }: Pick<OpenResponse, "id" | "dispatchSeq">,
  end: Pick<EntryDraft, "outcome" | "code" | "output">,
): EntryDraft {
  const { actor = "system", agent, request_id: requestId, model, tier } = entry;
  return {
    ...{ phase: "outcome", ref: dispatchSeq, action: "response.dispatch", channel: "system" },
    ...{ actor, agent, requestId, model, tier, ...end },
    detail: { dialect: "responses", response: id },
  };
}
