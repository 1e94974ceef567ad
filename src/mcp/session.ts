import type { Server } from "@modelcontextprotocol/sdk/server/index.js";
import type { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import type { RequestId } from "@modelcontextprotocol/sdk/types.js";
import type { Caller } from "../access/caller.ts";
import type { SessionEvents } from "./events.ts";
import type { SseTransport } from "./sse-transport.ts";

/** Why a request is broken off; the reason of its abort. */
export type BrokenOff = "cancelled" | "gone";
/** Its client wants no answer any more. */
export const CANCELLED = "cancelled" satisfies BrokenOff;
/** Its session has ended: the client has left, its token is no good any more, or the process stops. */
export const GONE = "gone" satisfies BrokenOff;

/** How a session's messages come and go. */
export type SessionTransport =
  | {
      readonly kind: "streamable";
      readonly transport: WebStandardStreamableHTTPServerTransport;
      readonly events: SessionEvents;
    }
  | { readonly kind: "sse"; readonly transport: SseTransport };

/** One client, from its first request until it goes, is swept, or its token ends. */
export interface Session {
  readonly id: string;
  readonly workspaceId: number;
  /** The token that opened it: nobody else reaches it. */
  readonly actor: string;
  readonly server: Server;
  readonly by: SessionTransport;
  /** Of the newest request. The session ends when this caller's rights do. */
  caller: Caller;
  /** Milliseconds (monotonic) of the last request. */
  lastSeenAt: number;
  /** Streams that are open now: one that listens is not idle. */
  streams: number;
  /** Requests that are being answered, by their ids: a session that waits for them is not idle, however long they take. */
  readonly requests: Map<RequestId, AbortController>;
  /** One that lost its stream is given less time than one that never had any. */
  hadStream: boolean;
  /** Whether it has posted messages together: a stream of such a session may bring more than one answer. */
  hadBatch: boolean;
  /** What it knows of its tools, as the digest of their list: as they were when it began, or when it was told last. */
  toldTools: string;
}
