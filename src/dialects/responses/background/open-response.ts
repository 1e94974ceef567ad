import { Problem } from "../../../base/errors.ts";
import type { Via } from "../../../base/via.ts";
import { CallInterruption } from "../../../gate/direct/running-calls.ts";
import type { EntryDraft } from "../../../ledger/entry.ts";
import type { ParsedEntry } from "../../../ledger/reading/parsed-entry.ts";
import type { Db } from "../../../store/db.ts";
import type { Claim } from "../../../tasks/claims/claims.ts";
import type { ResponseJournal } from "./journal.ts";

/** The abort reason when a client cancels its response. */
export const CANCELLED = new Problem("client_closed", "The response was cancelled.");

/** A background response that has not ended. */
export interface OpenResponse {
  readonly workspaceId: number;
  readonly id: string;
  /** Null if it is not made as an agent. */
  readonly agentId: number | null;
  /** The Gatehouse instances that its request passed through; unknown after a restart. */
  readonly via: Via;
  /** Ends the response. The reason is `CANCELLED` or a `CallInterruption`. */
  readonly abort: AbortController;
  /** Aborted when the process is about to stop. A response that is not running is then left to a later start. */
  readonly wait: AbortController;
  /** Without it, another node has the response, and this one writes nothing more for it. */
  readonly claim: Claim;
  /** The store for the response: its transactions throw `ClaimLost` without the claim. */
  readonly db: Db;
  /** Resolves when the response's end is written or deferred, or when this process has nothing more to do with it. */
  readonly forgotten: PromiseWithResolvers<void>;
  /** Called when stops no longer need to find the response. */
  unregister(): void;
  /** The entry that dispatched the response; 0 until that entry is on disk. */
  dispatchSeq: number;
  isRunning: boolean;
  /** Which attempt this is, including those of earlier processes. Null until it is counted. */
  attempt: number | null;
  /** Its events. Null until its request is read, or if nobody can read them. */
  journal: ResponseJournal | null;
  /** Whether its answer is on disk. */
  isAnswered: boolean;
  /** The node that gets the response after a shutdown of its call; null if whichever node is first may take it. */
  givenTo: string | null;
  /** How the response ended without an answer. Set before the end is written. */
  end: UnansweredEnd | null;
}

/** Why a background response has no answer. */
export interface ResponseFailure {
  readonly code: string;
  readonly message: string;
}

/** The end of a response without an answer, as it is stored. */
export interface UnansweredEnd {
  readonly status: "failed" | "cancelled";
  readonly error: ResponseFailure | null;
}

/** Whether a response is left to the next start. */
export function isShutdown({ reason }: AbortSignal): boolean {
  return reason instanceof CallInterruption && reason.reason === "shutdown";
}

/** How a cancelled, stopped or failed response ends. */
export function endOf({ aborted, reason }: AbortSignal, failure: ResponseFailure | null): UnansweredEnd {
  if (!aborted) {
    const message = "The provider's answer was not a complete response.";
    const error = failure ?? { code: "provider_failed", message };
    // The response was stopped before it ran.
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
