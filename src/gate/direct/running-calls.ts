import { Signal } from "../../base/signal.ts";

/**
 * Why Gatehouse ended a call; the reason of its abort signal. An object, so a client's own reason cannot be mistaken
 * for it.
 */
export class CallInterruption {
  readonly reason: "agent_stopped" | "workspace_stopped" | "shutdown";

  constructor(reason: CallInterruption["reason"]) {
    this.reason = reason;
  }

  /** The code of the call's outcome. The contract has one for all stops. */
  get code(): "agent_stopped" | "shutdown" {
    return this.reason === "shutdown" ? "shutdown" : "agent_stopped";
  }
}

/** A call made by a caller itself, outside of tasks. */
export interface RunningCall {
  readonly workspaceId: number;
  /** Null if it is not made as an agent. */
  readonly agentId: number | null;
  /** The request, if it may lead to several attempts, each with its own entries. */
  readonly requestId?: string | undefined;
  /** Ends the call, whatever it is doing. */
  readonly abort: AbortController;
  /** Ends the wait before the call is made; no effect afterwards. Null if it never waits. */
  readonly wait: AbortController | null;
  /** Whether it has been dispatched but is not in flight. A stop must still find it. */
  readonly isQueued?: boolean;
  /** Whether it is left to the next start. A drain then does not wait for it, but a stop must still find it. */
  readonly isLeftToNextStart?: boolean;
}

/** Tool and model calls in flight outside of tasks, so that a stop finds each of them. */
export class RunningCalls {
  /** Emits each call when it has ended. */
  readonly ended = new Signal<RunningCall>();
  readonly #running = new Map<RunningCall, PromiseWithResolvers<void>>();
  /** How many of a workspace's calls are in flight. Thousands may be queued, so they are not counted for each call. */
  readonly #inFlight = new Map<number, number>();
  #isDraining = false;

  /** Whether new calls are refused, since the process is about to stop. */
  get isDraining(): boolean {
    return this.#isDraining;
  }

  /** A workspace's requests that may still lead to further attempts. */
  requests(workspaceId: number): ReadonlySet<string> {
    const requests = new Set<string>();
    for (const call of this.#running.keys()) {
      if (call.workspaceId === workspaceId && call.requestId !== undefined) requests.add(call.requestId);
    }
    return requests;
  }

  /** Whether a workspace has at least this many calls in flight. */
  hasAtLeast(calls: number, workspaceId: number): boolean {
    return (this.#inFlight.get(workspaceId) ?? 0) >= calls;
  }

  /** @returns a function that MUST be called when the call's outcome is written, or cannot be */
  add(call: RunningCall): () => void {
    const ended = Promise.withResolvers<void>();
    this.#running.set(call, ended);
    this.#count(call, 1);
    return () => {
      if (!this.#running.delete(call)) return;
      this.#count(call, -1);
      ended.resolve();
      this.ended.emit(call);
    };
  }

  #count({ workspaceId, isQueued = false }: RunningCall, sign: 1 | -1): void {
    if (isQueued) return;
    const inFlight = (this.#inFlight.get(workspaceId) ?? 0) + sign;
    if (inFlight === 0) this.#inFlight.delete(workspaceId);
    else this.#inFlight.set(workspaceId, inFlight);
  }

  /** Ends the calls of an agent. Their upstreams are notified. */
  stopAgent(workspaceId: number, agentId: number): void {
    for (const call of this.#running.keys()) {
      if (call.workspaceId === workspaceId && call.agentId === agentId) {
        call.abort.abort(new CallInterruption("agent_stopped"));
      }
    }
  }

  /** Ends all calls of a workspace, including those not made as an agent. */
  stopWorkspace(workspaceId: number): void {
    for (const call of this.#running.keys()) {
      if (call.workspaceId === workspaceId) call.abort.abort(new CallInterruption("workspace_stopped"));
    }
  }

  /** Ends the calls in flight, because the other nodes have given this one up. New calls are accepted. */
  cutOff(): void {
    for (const { abort, isQueued } of this.#running.keys()) {
      if (!isQueued) abort.abort(new CallInterruption("shutdown"));
    }
  }

  /** Refuses new calls and those that are still waiting. Resolves when none is in flight. */
  async drain(): Promise<void> {
    this.#isDraining = true;
    for (const { wait } of this.#running.keys()) wait?.abort(new CallInterruption("shutdown"));
    await this.#allEnded();
  }

  /** Ends every call when the process stops. Resolves when their outcomes are written, or left to the next start. */
  async stop(): Promise<void> {
    this.#isDraining = true;
    for (const { abort } of this.#running.keys()) abort.abort(new CallInterruption("shutdown"));
    await this.#allEnded();
  }

  async #allEnded(): Promise<void> {
    const waited = [...this.#running].filter(([{ isLeftToNextStart }]) => !isLeftToNextStart);
    await Promise.all(waited.map(([, { promise }]) => promise));
  }
}
