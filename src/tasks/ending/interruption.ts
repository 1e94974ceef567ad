import type { AgentDenied } from "../../agents/index.ts";
import type { PersonDecision } from "../../gate/call.ts";
import { CONVERSATIONS_FULL } from "../run/conversation-memory.ts";
import type { TaskErrorCode } from "../task.ts";
import type { TaskEnding } from "./finish.ts";
import type { EndingRetries } from "./retries.ts";

/**
 * Why a task is ended from outside. It is the reason of the run's abort signal. Only the first interruption counts.
 * Until the task's end is on disk, it takes precedence over any other result of the run.
 */
export class TaskInterruption {
  readonly reason: "cancelled" | "agent_stopped" | "workspace_stopped" | "shutdown" | "handed_over" | "lost";
  /** Milliseconds since the Unix epoch. */
  readonly at: number;
  /**
   * The person's decision to end the task, if the task's end is its evidence. The decision's entry is written
   * together with the end.
   */
  readonly decision: PersonDecision | null;
  /** The node that gets the task; null if whichever node is first may take it. */
  readonly to: string | null;
  readonly #deferred = Promise.withResolvers<void>();

  constructor(
    reason: TaskInterruption["reason"],
    at: number,
    decision: PersonDecision | null = null,
    to: string | null = null,
  ) {
    this.reason = reason;
    this.at = at;
    this.decision = decision;
    this.to = to;
  }

  /** Resolves when the store has refused the task's end, which is then written later. */
  get deferred(): Promise<void> {
    return this.#deferred.promise;
  }

  defer(): void {
    this.decision?.defer();
    this.#deferred.resolve();
  }

  /** How the task ends; null if it does not end but is left to another node, or to the next start. */
  get ending(): TaskEnding | null {
    switch (this.reason) {
      case "cancelled":
        return cancelledEnding();
      case "agent_stopped":
        return stoppedEnding();
      case "workspace_stopped":
        return stoppedEnding(WORKSPACE_STOPPED);
      default:
        return null;
    }
  }
}

/** Signals that may arrive while a task is being ended. */
export interface EndingSignals {
  /** The task's own signal. An interruption still counts if it arrives while the end cannot be written. */
  readonly signal: AbortSignal;
  /** The process is stopping: an end that cannot be written is retried once, then left to the next start. */
  readonly stopping: AbortSignal;
  readonly retries: EndingRetries;
}

/** Thrown instead of making the next call when the process is about to stop. All progress is saved. */
export class DrainInterrupt extends Error {
  override readonly name = "DrainInterrupt";
}

export interface RunSignals extends EndingSignals {
  /** The process is about to stop: calls in flight are awaited, and no new ones are made. */
  readonly draining: AbortSignal;
}

/** The interruption that aborted the signal, if one did. */
export function interruptionOf(signal: AbortSignal): TaskInterruption | null {
  return signal.reason instanceof TaskInterruption ? signal.reason : null;
}

function cancelledEnding(): TaskEnding {
  return { status: "cancelled", error: null, output: null };
}

/** Code of a call that is refused because the token that dispatched its task has ended. */
export const TOKEN_ENDED = "invalid_token";
export const TOKEN_ENDED_WORDS = "The token that dispatched the task was revoked or has expired.";
export const AGENT_STOPPED = "The agent was stopped.";
export const WORKSPACE_STOPPED = "The workspace was stopped.";

/** The contract has one code for all stops. */
export function stoppedEnding(message = AGENT_STOPPED): TaskEnding {
  return { status: "cancelled", error: { code: "agent_stopped", message }, output: null };
}

export function failure(code: TaskErrorCode, message: string): TaskEnding {
  return { status: "failed", error: { code, message }, output: null };
}

/** The ending of a task whose next call was refused before anything was sent. */
export function deniedEnding({ code, message }: AgentDenied): TaskEnding {
  if (code === "agent_stopped") return stoppedEnding(message);
  if (code === CONVERSATIONS_FULL) return failure("tool_loop_limit", message);
  return failure(code === TOKEN_ENDED ? "interrupted" : "credits_exhausted", message);
}

export function unrecorded(): TaskEnding {
  return failure("interrupted", "The evidence ledger could not be written, so the task was ended.");
}

/** The ending of a task whose stored rows contradict the ledger. */
export function contradicted(): TaskEnding {
  return failure(
    "interrupted",
    "The stored task contradicts the evidence ledger, so the task was ended. See the server's log for details.",
  );
}

export function internal(): TaskEnding {
  return failure("internal", "An internal error occurred. Search the server's log for the task's id.");
}
