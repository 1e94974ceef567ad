import type { Server } from "@modelcontextprotocol/sdk/server/index.js";
import type { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import type { RequestId } from "@modelcontextprotocol/sdk/types.js";
import type { Caller } from "../access/caller.ts";
import type { SessionEvents } from "./events.ts";
import type { SseTransport } from "./sse-transport.ts";

/** Why a request was aborted, as the abort's reason. */
export type AbortReason = "cancelled" | "gone";
/** The client no longer wants an answer. */
export const CANCELLED = "cancelled" satisfies AbortReason;
/** The session has ended: the client has left, its token is no longer valid, or the process stops. */
export const GONE = "gone" satisfies AbortReason;

export interface StreamableTransport {
  readonly kind: "streamable";
  readonly transport: WebStandardStreamableHTTPServerTransport;
  readonly events: SessionEvents;
}

/** The transport of a session's messages. */
export type SessionTransport =
  | StreamableTransport
  | { readonly kind: "sse"; readonly transport: SseTransport };

/**
 * A client's session, from its first request until the client leaves, the session expires or its token becomes
 * invalid.
 */
export interface McpSession {
  readonly id: string;
  readonly workspaceId: number;
  /** The token that opened the session. Only it can use the session. */
  readonly actor: string;
  readonly server: Server;
  readonly by: SessionTransport;
  /** The caller of the latest request. The session ends when this caller's rights do. */
  caller: Caller;
  /** When the last request arrived, in milliseconds (monotonic). */
  lastSeenAt: number;
  /** Number of open streams. A session with an open stream is not idle. */
  streams: number;
  /** Requests being answered, by id. A session with such a request is not idle, however long it takes. */
  readonly requests: Map<RequestId, AbortController>;
  /** A session that lost its stream expires sooner than one that never had one. */
  hadStream: boolean;
  /** Whether it has posted batches: a stream of such a session may have several answers. */
  hadBatch: boolean;
  /** The digest of the tool list as the client last knew it: when the session began, or at the last notification. */
  toldTools: string;
}

/** Whether a session MUST be kept, however long ago its last request was. */
export function isInUse({ streams, requests }: McpSession): boolean {
  return streams > 0 || requests.size > 0;
}

/** Cancels a request whose cancellation another node has received. */
export function cancelRequest({ requests, by }: McpSession, requestId: RequestId): void {
  requests.get(requestId)?.abort(CANCELLED);
  // The SDK stops waiting for its handler.
  by.transport.onmessage?.({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId } });
}

/**
 * Whether a client tries to resume a stream whose answer it already has. The SDK's client (1.32.2) does so a second
 * after each JSON-RPC error, and the SDK's server would keep an empty stream open for it. The client ignores a 405.
 */
export function isComplete({ by, requests, hadBatch }: McpSession, lastEventId: string | null): boolean {
  if (by.kind !== "streamable" || lastEventId === null || (hadBatch && requests.size > 0)) return false;
  return by.events.isLastAnswer(lastEventId);
}
