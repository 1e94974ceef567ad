import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { Caller } from "../access/caller.ts";
import { type Clock, every } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { GONE, isInUse, type McpSession } from "./session.ts";
import {
  IDLE_MS,
  LOST_MS,
  SESSIONS_PER_NODE,
  SESSIONS_PER_WORKSPACE,
  tooManySessions,
} from "./session-limits.ts";
import type { SessionStore } from "./session-store.ts";

const SWEEP_MS = 15_000;

/** The longest timer. Tokens expire by the wall clock, which may be changed while a timer runs. */
const LONGEST_WAIT_MS = 3_600_000;

export interface SessionsParts {
  readonly clock: Clock;
  readonly log: Log;
  /** Null if there is only one node. */
  readonly store: SessionStore | null;
  /** When the rights of a session's caller end, in milliseconds since the Unix epoch. May be in the past. */
  rightsEnd(session: McpSession): number | Promise<number>;
}

/**
 * The sessions that this node serves. Without a store that nodes share, they are only in memory: a restart ends them, and
 * clients start new ones. With one, a session is released here without ending, and opened again when it is needed.
 */
export class McpSessions {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #store: SessionStore | null;
  readonly #rightsEnd: SessionsParts["rightsEnd"];
  readonly #byId = new Map<string, McpSession>();
  readonly #held = new Map<number, number>();
  readonly #endSweeps: () => void;
  #checking: Promise<void> | null = null;
  #isDue = false;
  /** The earliest known expiry of a session, in milliseconds since the Unix epoch. */
  #nextEnd = Number.POSITIVE_INFINITY;
  #cancelTimer = () => {};

  constructor(parts: SessionsParts) {
    this.#clock = parts.clock;
    this.#log = parts.log;
    this.#store = parts.store;
    this.#rightsEnd = parts.rightsEnd;
    parts.store?.listen({ ended: (session) => void this.#close(session) });
    this.#endSweeps = every(parts.clock, SWEEP_MS, () => this.#sweep());
  }

  get size(): number {
    return this.#byId.size;
  }

  of(workspaceId: number): McpSession[] {
    return [...this.#byId.values()].filter((session) => session.workspaceId === workspaceId);
  }

  /** Finds a session of this token. Sessions of other tokens are not found. */
  find(id: string, workspaceId: number, actor: string): McpSession | undefined {
    const session = this.#byId.get(id);
    return session?.workspaceId === workspaceId && session.actor === actor ? session : undefined;
  }

  /**
   * Makes room for one more session. If a workspace is at its limit, its longest-idle session ends. If the node is at
   * its limit, a session of the workspace with the most ends, even one in use if the new one's workspace has less
   * than an equal share.
   * @throws Problem 429 `rate_limited` if no session may be ended
   */
  makeRoom(workspaceId: number): void {
    const wanted = (this.#held.get(workspaceId) ?? 0) + 1;
    const isFull = wanted > SESSIONS_PER_WORKSPACE;
    if (!isFull && this.#byId.size < SESSIONS_PER_NODE) return;
    const workspaces = this.#held.size + (wanted === 1 ? 1 : 0);
    const isEntitled = !isFull && wanted <= SESSIONS_PER_NODE / workspaces;
    const ending = this.#idlest(isFull ? workspaceId : this.#withMost(), isEntitled);
    if (!ending) throw tooManySessions();
    this.#release(ending);
  }

  #withMost(): number {
    let most = { workspaceId: 0, sessions: 0 };
    for (const [workspaceId, sessions] of this.#held)
      if (sessions > most.sessions) most = { workspaceId, sessions };
    return most.workspaceId;
  }

  /**
   * The longest-idle session of a workspace. If none is idle and `mayEndUsed` is set, the one whose last request is
   * oldest.
   */
  #idlest(workspaceId: number, mayEndUsed: boolean): McpSession | undefined {
    let idlest: McpSession | undefined;
    let quietest: McpSession | undefined;
    for (const session of this.#byId.values()) {
      if (session.workspaceId !== workspaceId) continue;
      if (!quietest || session.lastSeenAt < quietest.lastSeenAt) quietest = session;
      if (!isInUse(session) && (!idlest || session.lastSeenAt < idlest.lastSeenAt)) idlest = session;
    }
    return idlest ?? (mayEndUsed ? quietest : undefined);
  }

  add(session: McpSession): void {
    this.#byId.set(session.id, session);
    this.#held.set(session.workspaceId, (this.#held.get(session.workspaceId) ?? 0) + 1);
    if (isStored(session)) this.#store?.attach(session);
    this.#watch(session);
  }

  /** Notes a request of the session. */
  visit(session: McpSession, caller: Caller): void {
    session.lastSeenAt = this.#clock.monotonic();
    if (session.caller === caller) return;
    session.caller = caller;
    // The caller may now use another secret, which expires earlier.
    this.#watch(session);
  }

  /**
   * From now on, the session's transport sends nothing once its caller's rights have ended, even if the timer is
   * late.
   */
  guard(session: McpSession): void {
    const { transport } = session.by;
    const send: Transport["send"] = transport.send.bind(transport);
    transport.send = async (message, options) => {
      const end = this.#rightsEnd(session);
      if (this.#clock.now() < (typeof end === "number" ? end : await end)) return send(message, options);
      this.end(session);
    };
  }

  /** Ends a session: aborts its requests and closes its streams. It ends on all nodes. */
  end(session: McpSession): void {
    if (this.#close(session) && isStored(session)) this.#store?.remove(session);
  }

  /** Frees what the session takes here. Other nodes may still serve it. */
  #release(session: McpSession): void {
    if (!this.#store || !isStored(session)) this.end(session);
    else if (this.#close(session)) this.#store.detach(session);
  }

  /** @returns whether the session was open here */
  #close(session: McpSession): boolean {
    if (!this.#byId.delete(session.id)) return false;
    const left = (this.#held.get(session.workspaceId) ?? 1) - 1;
    if (left === 0) this.#held.delete(session.workspaceId);
    else this.#held.set(session.workspaceId, left);
    for (const request of session.requests.values()) request.abort(GONE);
    if (session.by.kind === "streamable") session.by.events.forget();
    session.by.transport.close().catch((error: unknown) => {
      this.#log.warn("an MCP session did not close cleanly", { error });
    });
    return true;
  }

  /**
   * Ends the sessions whose callers' rights have ended. Runs one check at a time, and another one for changes during
   * it.
   */
  checkRights(): void {
    if (this.#checking) {
      this.#isDue = true;
      return;
    }
    this.#checking = this.#check().finally(() => {
      this.#checking = null;
      if (!this.#isDue) return;
      this.#isDue = false;
      this.checkRights();
    });
  }

  /** Releases all sessions. */
  async stop(): Promise<void> {
    this.#endSweeps();
    this.#cancelTimer();
    for (const session of [...this.#byId.values()]) this.#release(session);
    await this.#checking;
    await this.#store?.stop();
  }

  #sweep(): void {
    const now = this.#clock.monotonic();
    for (const session of [...this.#byId.values()]) {
      if (isInUse(session)) continue;
      const limit = session.hadStream ? LOST_MS : IDLE_MS;
      if (now - session.lastSeenAt >= limit) this.#release(session);
    }
    this.checkRights();
  }

  async #check(): Promise<void> {
    for (const session of [...this.#byId.values()]) {
      try {
        const end = this.#rightsEnd(session);
        this.#endAt(session, typeof end === "number" ? end : await end);
      } catch (error) {
        // Checked again at the next sweep; each call is checked in any case.
        this.#log.warn("an MCP session's token could not be checked", { error });
        return;
      }
    }
  }

  #watch(session: McpSession): void {
    const end = this.#rightsEnd(session);
    if (typeof end === "number") this.#endAt(session, end);
    else this.checkRights();
  }

  /**
   * Ends a session at the given time, or now if that time has passed. Over nodes it is only released: its client may use it
   * with a newer secret elsewhere, and each request is authenticated.
   */
  #endAt(session: McpSession, time: number): void {
    const ms = time - this.#clock.now();
    if (ms <= 0) this.#release(session);
    else if (time < this.#nextEnd && this.#byId.has(session.id)) this.#wait(time, ms);
  }

  #wait(time: number, ms: number): void {
    this.#cancelTimer();
    this.#nextEnd = time;
    this.#cancelTimer = this.#clock.after(Math.min(ms, LONGEST_WAIT_MS), () => {
      this.#nextEnd = Number.POSITIVE_INFINITY;
      this.checkRights();
    });
  }
}

/** The older transport's sessions end with their stream, which is on this node. */
function isStored({ by }: McpSession): boolean {
  return by.kind === "streamable";
}
