import type { RequestId } from "@modelcontextprotocol/sdk/types.js";
import type { Caller } from "../access/caller.ts";
import { Problem } from "../base/errors.ts";
import type { Call } from "../gate/call.ts";
import { StoreUnavailable } from "../store/db.ts";
import type { McpSession } from "./session.ts";

/** A session as any node can open it. */
export interface StoredSession {
  /** See `McpSession.toldTools`. */
  readonly toldTools: string;
}

/** What a node does when other nodes have changed a session that it serves. */
export interface SessionListener {
  /** The session has ended: close it here, without removing it. */
  ended(session: McpSession): void;
}

/**
 * The sessions of Streamable HTTP in a store that several nodes share. Each node opens a session when a request of it
 * arrives, and keeps its own requests, streams and events of it. The older transport's sessions are not stored: they
 * end with their stream.
 */
export interface SessionStore {
  /** Begins the ids of this node's events, so that no other node has one of the same id. */
  readonly eventPrefix: string;
  /**
   * Whether the ends of sessions may not have been reported. A session MUST then be found again before it is used.
   */
  readonly isDoubtful: boolean;
  /** Called once, before anything else. */
  listen(listener: SessionListener): void;
  /**
   * Stores a new session and records the call that opens it, in one transaction. A full workspace loses the session
   * that has been idle the longest.
   * @throws Problem 429 `rate_limited` if no session may be ended
   */
  add(call: Call, session: McpSession): Promise<void>;
  /** Finds a session that the caller's token opened on any node. @throws Problem 503 `ledger_unavailable` */
  find(id: string, caller: Caller): Promise<StoredSession | undefined>;
  /** This node serves the session from now on. */
  attach(session: McpSession): void;
  /** This node no longer serves the session, which goes on elsewhere. */
  detach(session: McpSession): void;
  /** Ends the session on all nodes. Repeated until the store can be written. */
  remove(session: McpSession): void;
  /** Cancels a request of the session that another node may be answering. */
  cancel(session: McpSession, id: RequestId): void;
  /** The session's stream for unsolicited messages is now on this node. Other nodes close theirs. */
  tookStream(session: McpSession): Promise<void>;
  /** Whether another node has this event, or had it. */
  isElsewhere(event: string): boolean;
  /**
   * Resumes a stream after an event of another node. If that node is gone, the answer is that of an event that is no longer
   * kept.
   * @throws Problem 503 `ledger_unavailable`
   */
  resume(session: McpSession, event: string): Promise<Response>;
  /** Resolves when everything noted so far has been written, if the store can be written. */
  settle(): Promise<void>;
  stop(): Promise<void>;
}

/** What a client is told while the store is away; any other error unchanged. */
export function asUnavailable(error: unknown): unknown {
  if (!(error instanceof StoreUnavailable)) return error;
  const detail = "MCP sessions cannot be read now. Retry later.";
  return new Problem("ledger_unavailable", detail, { cause: error, headers: { "Retry-After": "5" } });
}
