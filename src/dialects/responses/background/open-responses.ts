import type { RunningCalls } from "../../../gate/direct/running-calls.ts";
import type { Db } from "../../../store/db.ts";
import type { TaskClaims } from "../../../tasks/claims/claims.ts";
import type { EventHub } from "../../../tasks/events/hub.ts";
import type { Scheduler } from "../../../tasks/queue/scheduler.ts";
import type { ResponseEndings } from "./endings.ts";
import { isShutdown, type OpenResponse } from "./open-response.ts";

export interface OpenResponsesParts {
  readonly db: Db;
  readonly claims: Pick<TaskClaims, "isShared" | "claim" | "fence">;
  readonly running: Pick<RunningCalls, "add">;
  readonly scheduler: Pick<Scheduler, "remove">;
  readonly hub: EventHub;
}

type NewResponse = Pick<OpenResponse, "workspaceId" | "id" | "agentId" | "dispatchSeq" | "via">;

/** The background responses that have not ended, so that stops and cancellations find them. */
export class OpenResponses {
  readonly #parts: OpenResponsesParts;
  readonly #open = new Map<string, OpenResponse>();
  readonly #endings: () => Pick<ResponseEndings, "endQueued" | "release">;

  /** @param endings for responses that are not running */
  constructor(parts: OpenResponsesParts, endings: () => Pick<ResponseEndings, "endQueued" | "release">) {
    this.#parts = parts;
    this.#endings = endings;
  }

  get size(): number {
    return this.#open.size;
  }

  get(id: string): OpenResponse | undefined {
    return this.#open.get(id);
  }

  all(): readonly OpenResponse[] {
    return [...this.#open.values()];
  }

  add(response: NewResponse): OpenResponse {
    const { db, claims, running, scheduler } = this.#parts;
    const { workspaceId, agentId, id } = response;
    const abort = new AbortController();
    const wait = new AbortController();
    const open: OpenResponse = {
      ...response,
      ...{ abort, wait, forgotten: Promise.withResolvers<void>(), givenTo: null },
      claim: claims.claim(workspaceId, id),
      db: claims.fence(db, workspaceId, id),
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
      else void this.#endings().endQueued(open);
    });
    wait.signal.addEventListener("abort", () => {
      if (isQuiet() && scheduler.remove(workspaceId, id)) this.leave(open);
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

  /** Leaves a response that does not run to another node or to the next start. */
  leave(open: OpenResponse): void {
    if (this.#parts.claims.isShared) void this.#endings().release(open);
    else this.leaveToNextStart(open);
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
