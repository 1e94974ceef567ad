import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { Caller } from "../access/caller.ts";
import { type Clock, every } from "../base/clock.ts";
import { Problem } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { GONE, type McpSession } from "./session.ts";

/** Each session takes about 20 KiB, plus up to 256 KiB of events. */
const PER_WORKSPACE = 2_000;
const PER_NODE = 10_000;
/**
 * How long a session without requests and open streams is kept. A client that returns later gets 404 and starts a new
 * session.
 */
const IDLE_MS = 30 * 60_000;
/** How long a session that lost its stream is kept. */
const LOST_MS = 5 * 60_000;
const SWEEP_MS = 15_000;
const RETRY_SECONDS = 30;

/** The longest timer. Tokens expire by the wall clock, which may be changed while a timer runs. */
const LONGEST_WAIT_MS = 3_600_000;

export interface SessionsParts {
  readonly clock: Clock;
  readonly log: Log;
  /** When the rights of a session's caller end, in milliseconds since the Unix epoch. May be in the past. */
  rightsEnd(session: McpSession): number | Promise<number>;
}

/** The open sessions, kept only in memory: a restart ends them, and clients start new ones. */
export class McpSessions {
  readonly #clock: Clock;
  readonly #log: Log;
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
    this.#rightsEnd = parts.rightsEnd;
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
    const isFull = wanted > PER_WORKSPACE;
    if (!isFull && this.#byId.size < PER_NODE) return;
    const workspaces = this.#held.size + (wanted === 1 ? 1 : 0);
    const isEntitled = !isFull && wanted <= PER_NODE / workspaces;
    const ending = this.#idlest(isFull ? workspaceId : this.#withMost(), isEntitled);
    if (!ending) {
      throw new Problem("rate_limited", "Too many MCP sessions are open, and all are in use. Retry later.", {
        headers: { "Retry-After": String(RETRY_SECONDS) },
      });
    }
    this.end(ending);
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

  /** Removes a session, aborts its requests and closes its streams. */
  end(session: McpSession): void {
    if (!this.#byId.delete(session.id)) return;
    const left = (this.#held.get(session.workspaceId) ?? 1) - 1;
    if (left === 0) this.#held.delete(session.workspaceId);
    else this.#held.set(session.workspaceId, left);
    for (const request of session.requests.values()) request.abort(GONE);
    if (session.by.kind === "streamable") session.by.events.forget();
    session.by.transport.close().catch((error: unknown) => {
      this.#log.warn("an MCP session did not close cleanly", { error });
    });
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

  /** Ends all sessions. */
  async stop(): Promise<void> {
    this.#endSweeps();
    this.#cancelTimer();
    for (const session of [...this.#byId.values()]) this.end(session);
    await this.#checking;
  }

  #sweep(): void {
    const now = this.#clock.monotonic();
    for (const session of [...this.#byId.values()]) {
      if (isInUse(session)) continue;
      const limit = session.hadStream ? LOST_MS : IDLE_MS;
      if (now - session.lastSeenAt >= limit) this.end(session);
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

  /** Ends a session at the given time, or now if that time has passed. */
  #endAt(session: McpSession, time: number): void {
    const ms = time - this.#clock.now();
    if (ms <= 0) this.end(session);
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

function isInUse({ streams, requests }: McpSession): boolean {
  return streams > 0 || requests.size > 0;
}
