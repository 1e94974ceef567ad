import { Problem } from "../../base/errors.ts";

export interface Client {
  readonly address: string;
  readonly port: number;
}

/** The client of a request. Null once the request is over: fully answered, or the client has left. */
export type ClientOf = (request: Request) => Client | null;

/** A call that is ended so that another workspace can use its place. */
export interface CallToEnd {
  readonly request: Request;
  readonly client: Client;
}

/** A call that has begun. Bun reports its end only when asked, so it stays here until the next sweep. */
interface OpenCall {
  /** Null until the caller is known. */
  workspaceId: number | null;
  /** Whether the call ends work. Such a call is never refused, or ended to make room. */
  isUrgent: boolean;
}

/** All calls are checked once there are twice as many as were open at the last sweep, plus this many. */
const BETWEEN_SWEEPS = 256;
/**
 * If a sweep finds that fewer than one in this many calls have ended, the same fraction of all calls is refused
 * before the next sweep.
 */
const SWEEP_SHARE = 64;
/** The additional share of the limit that is freed, so that the next callers find room. */
const ROOM = 1 / 16;
const RETRY_SECONDS = 1;

/**
 * The open calls, each of which holds a connection. Calls with a known caller share `limit` places by max-min
 * fairness: a workspace may use what nobody else needs. When all places are taken, a workspace with more than an
 * equal share is refused. One with less is served, and the oldest calls of the workspaces with the most are ended.
 * Connections beyond the limit are for callers not yet authenticated.
 */
export class OpenCalls {
  readonly #limit: number;
  readonly #calls = new Map<Request, OpenCall>();
  readonly #held = new Map<number, number>();
  #clientOf: ClientOf | null = null;
  #claimed = 0;
  #nextSweep = BETWEEN_SWEEPS;
  /** Number of calls to refuse before another sweep is worthwhile. */
  #refusable = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Starts counting for a server. */
  attach(clientOf: ClientOf): void {
    this.#clientOf = clientOf;
  }

  /** Counts a call whose caller is not known yet. */
  add(request: Request, isUrgent: boolean): void {
    this.#calls.set(request, { workspaceId: null, isUrgent });
    if (this.#calls.size >= this.#nextSweep) this.sweep();
  }

  /** Whether at least this many calls are open. */
  hasAsManyAs(count: number): boolean {
    if (this.#calls.size < count) return false;
    this.#sweepIfUseful();
    return this.#calls.size >= count;
  }

  /**
   * Counts a call for its workspace, once its caller is known.
   * @throws Problem 429 `rate_limited` if all places are taken and the workspace holds its share
   */
  claim(request: Request, workspaceId: number): void {
    const call = this.#calls.get(request);
    if (!call || call.workspaceId !== null) return;
    this.#count(call, workspaceId);
    if (call.isUrgent || this.#claimed <= this.#limit) return;
    this.#sweepIfUseful();
    if (this.#claimed <= this.#limit || this.#heldBy(workspaceId) <= this.#share) return;
    this.#uncount(call);
    throw new Problem(
      "rate_limited",
      "The workspace has used its share of the server's open calls. Retry when some are done.",
      {
        headers: { "Retry-After": String(RETRY_SECONDS), Connection: "close" },
        // Recording the refusal would hold the connection until the entry is written.
        isRecorded: false,
      },
    );
  }

  /** Whether calls may have to be ended. */
  get isPastLimit(): boolean {
    return this.#claimed > this.#limit;
  }

  /** @returns the clients of the calls that are still open */
  sweep(): Client[] {
    const clients: Client[] = [];
    for (const [request, call] of this.#calls) {
      const client = this.#clientOf?.(request);
      if (client) clients.push(client);
      else this.#forget(request, call);
    }
    this.#nextSweep = 2 * clients.length + BETWEEN_SWEEPS;
    return clients;
  }

  /**
   * The calls to end: the oldest ones of the workspaces with the most. No workspace is left with less than an equal
   * share.
   */
  excess(): CallToEnd[] {
    if (!this.isPastLimit) return [];
    this.#refusable = 0;
    this.sweep();
    let wanted = this.#claimed - this.#limit;
    if (wanted <= 0) return [];
    wanted += Math.floor(this.#limit * ROOM);
    const level = this.#levelFor(wanted);
    const held = new Map(this.#held);
    const ending: CallToEnd[] = [];
    for (const [request, { workspaceId, isUrgent }] of this.#calls) {
      if (ending.length === wanted) break;
      if (workspaceId === null || isUrgent) continue;
      const left = (held.get(workspaceId) ?? 0) - 1;
      const client = left >= level ? this.#clientOf?.(request) : null;
      if (!client) continue;
      held.set(workspaceId, left);
      ending.push({ request, client });
    }
    return ending;
  }

  /** Removes a call that was ended. Bun may not report its end yet. */
  drop(request: Request): void {
    const call = this.#calls.get(request);
    if (call) this.#forget(request, call);
  }

  /** The highest cap per workspace at which this many calls end; never less than an equal share. */
  #levelFor(ending: number): number {
    let low = Math.ceil(this.#share);
    let high = Math.max(low, ...this.#held.values());
    while (low < high) {
      const level = Math.ceil((low + high) / 2);
      let above = 0;
      for (const held of this.#held.values()) above += Math.max(0, held - level);
      if (above >= ending) low = level;
      else high = level - 1;
    }
    return low;
  }

  /** An equal share for each workspace with an open call. */
  get #share(): number {
    return this.#limit / Math.max(1, this.#held.size);
  }

  #heldBy(workspaceId: number): number {
    return this.#held.get(workspaceId) ?? 0;
  }

  /**
   * Checking all calls takes time in proportion to their number, so refused calls must rarely cause a check that
   * frees nothing.
   */
  #sweepIfUseful(): void {
    if (this.#refusable > 0) {
      this.#refusable -= 1;
      return;
    }
    const before = this.#calls.size;
    const worth = Math.floor(before / SWEEP_SHARE);
    this.sweep();
    if (before - this.#calls.size <= worth) this.#refusable = worth;
  }

  #count(call: OpenCall, workspaceId: number): void {
    call.workspaceId = workspaceId;
    this.#claimed += 1;
    this.#held.set(workspaceId, this.#heldBy(workspaceId) + 1);
  }

  #uncount(call: OpenCall): void {
    const { workspaceId } = call;
    if (workspaceId === null) return;
    call.workspaceId = null;
    this.#claimed -= 1;
    const left = this.#heldBy(workspaceId) - 1;
    if (left === 0) this.#held.delete(workspaceId);
    else this.#held.set(workspaceId, left);
  }

  #forget(request: Request, call: OpenCall): void {
    this.#calls.delete(request);
    this.#uncount(call);
  }
}
