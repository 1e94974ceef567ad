import { Problem } from "../../../base/errors.ts";
import type { Via } from "../../../base/via.ts";
import { CallInterruption } from "../../../gate/direct/running-calls.ts";
import type { EntryDraft } from "../../../ledger/entry.ts";
import type { ParsedEntry } from "../../../ledger/reading/parsed-entry.ts";

/** The reason of a signal that a client has aborted by cancelling its response. */
export const CANCELLED = new Problem("client_closed", "The response was cancelled.");

/** A response in the background that has not ended. */
export interface OpenResponse {
  readonly workspaceId: number;
  readonly id: string;
  /** Null if it is not made as an agent. */
  readonly agentId: number | null;
  /** The Gatehouses that its request passed through; unknown after a restart. */
  readonly via: Via;
  /** Ends it. The reason is `CANCELLED` or a `CallInterruption`. */
  readonly abort: AbortController;
  /** Aborted when the process is about to stop: a later start begins the response. */
  readonly wait: AbortController;
  /** Resolves when its end is written or put off, or this process has nothing more to do with it. */
  readonly left: PromiseWithResolvers<void>;
  /** Called when no stop needs to find it any more. */
  unregister(): void;
  /** The entry that dispatched it; 0 until that is on disk. */
  dispatchSeq: number;
  isRunning: boolean;
  /** Whether its answer is on disk. */
  isAnswered: boolean;
  /** How it ended without an answer. Set before that is written. */
  end: ResponseEnd | null;
}

/** Why a response in the background has no answer. */
export interface ResponseFailure {
  readonly code: string;
  readonly message: string;
}

/** The end of a response without an answer, as it is stored. */
export interface ResponseEnd {
  readonly status: "failed" | "cancelled";
  readonly error: ResponseFailure | null;
}

/** Whether a response is left to the next start. */
export function isShutdown({ reason }: AbortSignal): boolean {
  return reason instanceof CallInterruption && reason.reason === "shutdown";
}

/** How a response ends that was cancelled or stopped, or that failed. */
export function endOf({ aborted, reason }: AbortSignal, failure: ResponseFailure | null): ResponseEnd {
  if (!aborted) {
    const message = "The provider's answer was not a whole response.";
    const error = failure ?? { code: "provider_failed", message };
    // It was stopped before it ran.
    return { status: error.code === "agent_stopped" ? "cancelled" : "failed", error };
  }
  if (!(reason instanceof CallInterruption)) return { status: "cancelled", error: null };
  const message = failure?.message ?? "The agent or its workspace was stopped.";
  return { status: "cancelled", error: { code: reason.code, message } };
}

/** The outcome of the entry that dispatched a response. */
export function endDraft(
  { actor = "system", agent, request_id: requestId, model, tier }: ParsedEntry,
  { id, dispatchSeq }: Pick<OpenResponse, "id" | "dispatchSeq">,
  end: Pick<EntryDraft, "outcome" | "code" | "output">,
): EntryDraft {
  return {
    ...{ phase: "outcome", ref: dispatchSeq, action: "response.dispatch", channel: "system" },
    ...{ actor, agent, requestId, model, tier, ...end },
    detail: { dialect: "responses", response: id },
  };
}
