import type { Agent } from "../access/agents.ts";
import { Problem } from "../base/errors.ts";
import { interrupted } from "../gate/direct/refusals.ts";
import { CallInterruption, type RunningCalls } from "../gate/direct/running-calls.ts";

export interface ClientCallParts {
  readonly workspaceId: number;
  readonly agent: Agent | null;
  readonly requestId?: string | undefined;
  /** Aborts when the client leaves. */
  readonly signal: AbortSignal;
  /** Called with the refusal if the request is abandoned to free its memory. */
  onRefused(refused: (problem: Problem) => void): void;
}

/**
 * A client's call in progress, which ends when the client leaves or Gatehouse stops it. Its `leave` MUST be called.
 */
export class ClientCall {
  /** Ends the call, whatever it is doing. */
  readonly abort = new AbortController();
  /** Aborts when the call may no longer begin; includes `abort`. */
  readonly wait: AbortSignal;
  /** Releases the call's concurrency slot, once it has one. */
  releasePlace: () => void = () => {};
  readonly #agent: Agent | null;
  readonly #unregister: () => void;

  constructor(running: RunningCalls, parts: ClientCallParts) {
    const { workspaceId, agent, requestId, signal, onRefused } = parts;
    const { abort } = this;
    const wait = new AbortController();
    abort.signal.addEventListener("abort", () => wait.abort(abort.signal.reason), { once: true });
    this.wait = wait.signal;
    this.#agent = agent;
    // A background response has no client that could disconnect: only Gatehouse aborts it, and gives a reason.
    const leaves = () => abort.abort(signal.reason instanceof CallInterruption ? signal.reason : undefined);
    signal.addEventListener("abort", leaves, { once: true });
    if (signal.aborted) leaves();
    onRefused((problem) => abort.abort(problem));
    const unregister = running.add({ workspaceId, agentId: agent?.id ?? null, requestId, abort, wait });
    this.#unregister = () => {
      signal.removeEventListener("abort", leaves);
      unregister();
    };
  }

  /** Releases everything that the call holds. Safe to call more than once. */
  readonly leave = (): void => {
    this.releasePlace();
    this.#unregister();
  };

  /** The error to throw in place of `error`: the refusal, if the call was ended on purpose. */
  refusal(error: unknown): unknown {
    const { aborted, reason } = this.wait;
    if (!aborted || error instanceof Problem) return error;
    if (reason instanceof Problem) return reason;
    if (reason instanceof CallInterruption) return interrupted(reason, this.#agent);
    return new Problem("client_closed", "The client closed the connection before it was answered.");
  }
}
