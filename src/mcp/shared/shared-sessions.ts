import type { RequestId } from "@modelcontextprotocol/sdk/types.js";
import type { Caller } from "../../access/caller.ts";
import { type Clock, every } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Call } from "../../gate/call.ts";
import type { BusMessage } from "../../nodes/bus.ts";
import type { Nodes } from "../../nodes/nodes.ts";
import { type Db, StoreUnavailable } from "../../store/db.ts";
import { cancelRequest, isInUse, type McpSession } from "../session.ts";
import { IDLE_MS, LOST_MS } from "../session-limits.ts";
import {
  asUnavailable,
  type SessionListener,
  type SessionStore,
  type StoredSession,
} from "../session-store.ts";
import { Replays } from "./replays.ts";
import { sessionToEnd } from "./session-room.ts";
import {
  deleteSessions,
  existingSessions,
  findSession,
  insertSession,
  purgeSessions,
  type SessionAges,
  type SessionKey,
  type SessionUse,
  updateSessions,
} from "./session-rows.ts";

/** How often the last uses of sessions are written. */
const WRITE_MS = 30_000;
const PURGE_MS = 60_000;
/** Most sessions that one statement writes. */
const SESSIONS_AT_ONCE = 1_000;
/** A node that has received nothing for longer looks sessions up before it uses them. */
const DEAF_MS = 750;

const ENDED = "mcp.ended";
const CANCELLED = "mcp.cancelled";
const STREAM_TAKEN = "mcp.stream_taken";

export interface SharedSessionParts {
  readonly db: Db;
  readonly nodes: Pick<Nodes, "id" | "bus" | "beat" | "leases" | "list">;
  readonly clock: Clock;
  readonly log: Log;
}

/** A session that this node serves. */
interface ServedSession extends SessionKey {
  readonly session: McpSession;
  /** What this node has written of it. */
  written: Pick<SessionUse, "usedAt" | "toldTools">;
}

/**
 * Sessions as rows that all nodes share. A call writes nothing: last uses are written together, twice a minute. Messages
 * between nodes make ends and cancellations fast. A node that missed one learns of an end by its next write.
 */
export class SharedSessions implements SessionStore {
  readonly eventPrefix = `${crypto.randomUUID().slice(0, 8)}.`;
  readonly #parts: SharedSessionParts;
  readonly #served = new Map<string, ServedSession>();
  /** The last uses of sessions that this node no longer serves, until they are written. */
  readonly #left = new Map<string, SessionUse>();
  /** Sessions whose rows are still to be removed. */
  readonly #removed = new Map<string, SessionKey>();
  readonly #ends: (() => void)[];
  readonly #replays: Replays;
  #listener: SessionListener = { ended() {} };
  #writing: Promise<void> = Promise.resolve();
  /** The next write, while it has not begun. */
  #due: Promise<void> | null = null;

  constructor(parts: SharedSessionParts) {
    this.#parts = parts;
    const { clock, nodes } = parts;
    const { bus, leases } = nodes;
    this.#replays = new Replays({
      ...{ ...parts, eventPrefix: this.eventPrefix },
      served: (hash) => this.#served.get(hash)?.session,
    });
    this.#ends = [
      bus.listen(ENDED, (message) => this.#on(message, (served) => this.#end(served))),
      bus.listen(CANCELLED, (message) =>
        this.#on(message, ({ session }) => cancelHashed(session, message.request)),
      ),
      bus.listen(STREAM_TAKEN, (message) => this.#on(message, ({ session }) => closeStream(session))),
      bus.missed.listen(() => void this.#inTurn(() => this.#findAll())),
      every(clock, WRITE_MS, () => void this.settle()),
      leases.hold("mcp_sessions", () => every(clock, PURGE_MS, () => void this.#inTurn(() => this.#purge()))),
    ];
  }

  get isDoubtful(): boolean {
    return this.#parts.nodes.bus.deafForMs > DEAF_MS;
  }

  listen(listener: SessionListener): void {
    this.#listener = listener;
  }

  async add(call: Call, session: McpSession): Promise<void> {
    const { clock } = this.#parts;
    const { workspaceId, actor, toldTools } = session;
    const hash = hashOf(session.id);
    await call.commit(async (tx) => {
      const now = clock.now();
      const usedAt = (other: string) => this.#usedAt(other);
      const ending = await sessionToEnd(tx, workspaceId, { now, usedAt, writeMs: WRITE_MS });
      if (ending !== undefined) {
        const key = { workspaceId, hash: ending };
        await deleteSessions(tx, [key]);
        tx.onCommit(() => this.#announceEnd(key));
      }
      insertSession(tx, { workspaceId, hash, actor, toldTools, usedAt: now });
    });
  }

  async find(id: string, { workspaceId, actor }: Caller): Promise<StoredSession | undefined> {
    const key = { workspaceId, hash: hashOf(id) };
    // The row may be older than its last use here.
    if (this.#left.has(key.hash)) await this.settle();
    if (this.#removed.has(key.hash)) return undefined;
    try {
      return await findSession(this.#parts.db.urgent, { ...key, actor }, this.#ages());
    } catch (error) {
      throw asUnavailable(error);
    }
  }

  attach(session: McpSession): void {
    const key = keyOf(session);
    // Its first use here is still to be written.
    const written = { usedAt: 0, toldTools: session.toldTools };
    this.#served.set(key.hash, { ...key, session, written });
  }

  detach(session: McpSession): void {
    const served = this.#served.get(hashOf(session.id));
    if (served?.session !== session) return;
    this.#served.delete(served.hash);
    this.#left.set(served.hash, this.#useOf(served));
  }

  remove(session: McpSession): void {
    const key = keyOf(session);
    this.#served.delete(key.hash);
    this.#left.delete(key.hash);
    this.#removed.set(key.hash, key);
    void this.settle();
  }

  cancel(session: McpSession, id: RequestId): void {
    const message = { session: hashOf(session.id), request: hashOfRequest(id) };
    this.#parts.nodes.bus.send(CANCELLED, message, { isUrgent: true });
  }

  async tookStream(session: McpSession): Promise<void> {
    const key = keyOf(session);
    this.#parts.nodes.bus.send(STREAM_TAKEN, { session: key.hash }, { isUrgent: true });
    const { actor } = session;
    let found: StoredSession | undefined;
    try {
      found = await findSession(this.#parts.db, { ...key, actor }, this.#ages());
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
    }
    const served = this.#served.get(key.hash);
    // Another node may have notified the client since.
    if (found && served && session.toldTools === served.written.toldTools) {
      session.toldTools = found.toldTools;
      served.written = { ...served.written, toldTools: found.toldTools };
    }
  }

  isElsewhere(event: string): boolean {
    return !event.startsWith(this.eventPrefix);
  }

  async resume(session: McpSession, event: string): Promise<Response> {
    try {
      return await this.#replays.read(session.workspaceId, hashOf(session.id), event);
    } catch (error) {
      throw asUnavailable(error);
    }
  }

  settle(): Promise<void> {
    this.#due ??= this.#inTurn(() => {
      this.#due = null;
      return this.#write();
    });
    return this.#due;
  }

  async stop(): Promise<void> {
    for (const end of this.#ends) end();
    this.#replays.stop();
    await this.settle();
  }

  #on(message: BusMessage, handle: (served: ServedSession) => void): void {
    const served = this.#served.get(String(message.session));
    if (served) handle(served);
  }

  /** Does one thing after another. What the store refuses now is done later, with the next write. */
  #inTurn(work: () => Promise<void>): Promise<void> {
    this.#writing = this.#writing.then(work).catch((error: unknown) => {
      const { log } = this.#parts;
      if (error instanceof StoreUnavailable) log.debug("MCP sessions cannot be stored now", { error });
      else log.error("MCP sessions cannot be stored", { error });
    });
    return this.#writing;
  }

  async #write(): Promise<void> {
    const { db } = this.#parts;
    const removed = [...this.#removed.values()];
    if (removed.length > 0) {
      await deleteSessions(db, removed);
      for (const key of removed) {
        this.#removed.delete(key.hash);
        this.#announceEnd(key);
      }
    }
    const changed = [...this.#served.values()].filter((served) => this.#hasNews(served));
    const left = [...this.#left.values()];
    const uses = [...left, ...changed.map((served) => this.#useOf(served))];
    for (let at = 0; at < uses.length; at += SESSIONS_AT_ONCE) {
      const batch = uses.slice(at, at + SESSIONS_AT_ONCE);
      const existing = await db.tx(null, (tx) => updateSessions(tx, batch));
      for (const use of batch) this.#hasWritten(use, existing.has(use.hash));
    }
  }

  #hasWritten(use: SessionUse, exists: boolean): void {
    if (this.#left.get(use.hash) === use) this.#left.delete(use.hash);
    const served = this.#served.get(use.hash);
    if (!served) return;
    const { usedAt, toldTools } = use;
    served.written = { usedAt, toldTools: toldTools ?? served.written.toldTools };
    if (!exists) this.#end(served);
  }

  /** Ends the sessions whose ends were not reported. */
  async #findAll(): Promise<void> {
    const all = [...this.#served.values()];
    for (let at = 0; at < all.length; at += SESSIONS_AT_ONCE) {
      const batch = all.slice(at, at + SESSIONS_AT_ONCE);
      const existing = await existingSessions(this.#parts.db, batch);
      for (const served of batch) if (!existing.has(served.hash)) this.#end(served);
    }
  }

  #purge(): Promise<void> {
    return purgeSessions(this.#parts.db, this.#ages());
  }

  #ages(): SessionAges {
    const now = this.#parts.clock.now();
    return { idle: now - IDLE_MS, lost: now - LOST_MS };
  }

  /** Tells all nodes, and this one, that the row is gone. */
  #announceEnd({ hash }: SessionKey): void {
    this.#parts.nodes.bus.send(ENDED, { session: hash }, { isUrgent: true });
    const served = this.#served.get(hash);
    if (served) this.#end(served);
  }

  /** Ends a session whose row is gone. */
  #end(served: ServedSession): void {
    if (this.#served.get(served.hash) === served) this.#served.delete(served.hash);
    this.#listener.ended(served.session);
  }

  #hasNews(served: ServedSession): boolean {
    const { usedAt, toldTools } = this.#useOf(served);
    return usedAt > served.written.usedAt || toldTools !== null;
  }

  #useOf({ workspaceId, hash, session, written }: ServedSession): SessionUse {
    const { hadStream, toldTools } = session;
    const told = toldTools === written.toldTools ? null : toldTools;
    return { workspaceId, hash, usedAt: this.#lastUse(session), hadStream, toldTools: told };
  }

  #usedAt(hash: string): number | undefined {
    const served = this.#served.get(hash);
    if (!served) return this.#left.get(hash)?.usedAt;
    return isInUse(served.session) ? Number.POSITIVE_INFINITY : this.#lastUse(served.session);
  }

  /** In milliseconds since the Unix epoch. A session in use is being used now. */
  #lastUse(session: McpSession): number {
    const { clock } = this.#parts;
    const ago = isInUse(session) ? 0 : clock.monotonic() - session.lastSeenAt;
    return Math.round(clock.now() - ago);
  }
}

function keyOf({ id, workspaceId }: McpSession): SessionKey {
  return { workspaceId, hash: hashOf(id) };
}

function hashOf(text: string): string {
  return new Bun.CryptoHasher("sha256").update(text).digest("hex");
}

/** Ids of requests may be of any length. */
function hashOfRequest(id: RequestId): string {
  return hashOf(JSON.stringify(id));
}

function cancelHashed(session: McpSession, hash: unknown): void {
  for (const id of session.requests.keys()) {
    if (hashOfRequest(id) === hash) cancelRequest(session, id);
  }
}

/** A client has one stream for unsolicited messages, and each message is sent once. */
function closeStream({ by }: McpSession): void {
  if (by.kind === "streamable") by.transport.closeStandaloneSSEStream();
}
