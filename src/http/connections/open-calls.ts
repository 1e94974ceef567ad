import { Problem } from "../../base/errors.ts";

export interface Client {
  readonly address: string;
  readonly port: number;
}

/** The client of a request, or null once the request is over: it was answered to the last byte, or its client has left. */
export type ClientOf = (request: Request) => Client | null;

/** A call whose connection makes room for another workspace's. */
export interface CallToEnd {
  readonly request: Request;
  readonly client: Client;
}

/** A call that has begun. Bun tells that it is over only if it is asked, so it stays until the next sweep. */
interface OpenCall {
  /** Null until its caller is known. */
  workspaceId: number | null;
  /** It ends work, so it is never refused, nor ended for others. */
  isUrgent: boolean;
}

/** All calls are looked through when they are twice as many as were open at the last time, and this many more. */
const BETWEEN_SWEEPS = 256;
/** If a sweep found fewer calls over than one in this many, this part of all calls is refused without another sweep. */
const SWEEP_SHARE = 64;
/** Calls are ended for this part of the limit more than there has to be, so that the next callers find room. */
const ROOM = 1 / 16;
const RETRY_SECONDS = 1;

/**
 * The calls that are open, each of which holds a connection. Those whose caller is known have `limit` places, in shares by
 * max-min fairness: a workspace may hold what nobody else needs. Past the limit, a workspace with more than an equal
 * share is refused; one with less is served, and the oldest calls of those with most are ended. The connections past the
 * limit are for callers that are not known yet.
 */
export class OpenCalls {
  readonly #limit: number;
  readonly #calls = new Map<Request, OpenCall>();
  readonly #held = new Map<number, number>();
  #clientOf: ClientOf | null = null;
  #claimed = 0;
  #nextSweep = BETWEEN_SWEEPS;
  /** Calls that may be refused before it is worth looking again which are over. */
  #refusable = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Begins to count: a server listens. */
  attach(clientOf: ClientOf): void {
    this.#clientOf = clientOf;
  }

  /** Counts a call of a caller that is not known yet. */
  add(request: Request, isUrgent: boolean): void {
    this.#calls.set(request, { workspaceId: null, isUrgent });
    if (this.#calls.size >= this.#nextSweep) this.sweep();
  }

  /** Whether there are so many open calls. */
  hasAsManyAs(count: number): boolean {
    if (this.#calls.size < count) return false;
    this.#sweepIfUseful();
    return this.#calls.size >= count;
  }

  /**
   * The caller of a call is known: counts it for its workspace.
   * @throws Problem 429 `rate_limited` if all places are taken, and the workspace holds its share of them
   */
  claim(request: Request, workspaceId: number): void {
    const call = this.#calls.get(request);
    if (!call || call.workspaceId !== null) return;
    this.#count(call, workspaceId);
    if (call.isUrgent || this.#claimed <= this.#limit) return;
    this.#sweepIfUseful();
    if (this.#claimed <= this.#limit || this.#heldBy(workspaceId) <= this.#share) return;
    this.#uncount(call);
    throw new Problem("rate_limited", "The workspace has as many calls open as its share of the server.", {
      headers: { "Retry-After": String(RETRY_SECONDS), Connection: "close" },
      // A call that waits for its entry would hold a connection for as long.
      isRecorded: false,
    });
  }

  /** Whether calls may have to be ended. */
  get isPastLimit(): boolean {
    return this.#claimed > this.#limit;
  }

  /** @returns the clients of the calls that are not over */
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

  /** The calls to end: the oldest of the workspaces with most, none of which is left with less than an equal share. */
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

  /** A call was ended: it does not count any more, though Bun may not know yet. */
  drop(request: Request): void {
    const call = this.#calls.get(request);
    if (call) this.#forget(request, call);
  }

  /** The highest number of calls that a workspace may keep so that so many end; never less than an equal share. */
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

  /** Of each workspace that has a call open. */
  get #share(): number {
    return this.#limit / Math.max(1, this.#held.size);
  }

  #heldBy(workspaceId: number): number {
    return this.#held.get(workspaceId) ?? 0;
  }

  /** A look at all calls costs each call that is refused as much as all of them: those that came for nothing are rare. */
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
