import type { RunningCalls } from "../../../gate/direct/running-calls.ts";
import type { EventHub } from "../../../tasks/events/hub.ts";
import type { Scheduler } from "../../../tasks/queue/scheduler.ts";
import { isShutdown, type OpenResponse } from "./open-response.ts";

export interface OpenResponsesParts {
  readonly running: Pick<RunningCalls, "add">;
  readonly scheduler: Pick<Scheduler, "remove">;
  readonly hub: EventHub;
}

type NewResponse = Pick<OpenResponse, "workspaceId" | "id" | "agentId" | "dispatchSeq" | "via">;

/** The background responses that have not ended, so that stops and cancellations find them. */
export class OpenResponses {
  readonly #parts: OpenResponsesParts;
  readonly #open = new Map<string, OpenResponse>();
  /** Ends a response that was aborted while it was not running. */
  readonly #end: (open: OpenResponse) => Promise<void>;

  constructor(parts: OpenResponsesParts, end: (open: OpenResponse) => Promise<void>) {
    this.#parts = parts;
    this.#end = end;
  }

  get(id: string): OpenResponse | undefined {
    return this.#open.get(id);
  }

  all(): readonly OpenResponse[] {
    return [...this.#open.values()];
  }

  add(response: NewResponse): OpenResponse {
    const { running, scheduler } = this.#parts;
    const { workspaceId, agentId, id } = response;
    const abort = new AbortController();
    const wait = new AbortController();
    const open: OpenResponse = {
      ...response,
      ...{ abort, wait, forgotten: Promise.withResolvers<void>() },
      unregister: running.add({ workspaceId, agentId, abort, wait, isQueued: true }),
      ...{ isRunning: false, attempt: null, journal: null, isAnswered: false, end: null },
    };
    this.#open.set(id, open);
    // While the response is being dispatched or is running, that code notices the abort itself.
    const isQuiet = () => open.dispatchSeq > 0 && !open.isRunning;
    abort.signal.addEventListener("abort", () => {
      if (!isQuiet()) return;
      scheduler.remove(workspaceId, id);
      if (isShutdown(abort.signal)) this.forget(open);
      else void this.#end(open);
    });
    wait.signal.addEventListener("abort", () => {
      if (isQuiet() && scheduler.remove(workspaceId, id)) this.leaveToNextStart(open);
    });
    return open;
  }

  /** Forgets a response that has ended, or that the next start begins because the process stops. */
  forget(open: OpenResponse): void {
    this.#endReading(open);
    open.unregister();
    this.#open.delete(open.id);
    open.forgotten.resolve();
  }

  /** Leaves it to the next start. Until then, it can still be cancelled and stopped. */
  leaveToNextStart(open: OpenResponse): void {
    const { workspaceId, agentId, abort } = open;
    this.#endReading(open);
    open.unregister();
    const left = { isQueued: true, isLeftToNextStart: true } as const;
    open.unregister = this.#parts.running.add({ workspaceId, agentId, abort, wait: null, ...left });
  }

  #endReading({ id }: OpenResponse): void {
    const { hub } = this.#parts;
    hub.find(id)?.close(null);
    hub.close(id);
  }

  /** Defers writing the response's end. Until it is written, its events are only in memory. */
  defer(open: OpenResponse): void {
    this.#parts.hub.find(open.id)?.close(null, true);
    open.unregister();
    open.forgotten.resolve();
  }
}
