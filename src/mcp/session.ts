import type { Server } from "@modelcontextprotocol/sdk/server/index.js";
import type { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import type { RequestId } from "@modelcontextprotocol/sdk/types.js";
import type { Caller } from "../access/caller.ts";
import type { Credential } from "../gate/gate.ts";
import type { SseTransport } from "./sse-transport.ts";
import type { ToolView } from "./tool-view.ts";

/** The reason of the abort of a request whose client wants no answer any more. */
export const CANCELLED = "cancelled";

/** How a session's messages come and go. */
export type SessionTransport =
  | { readonly kind: "streamable"; readonly transport: WebStandardStreamableHTTPServerTransport }
  | { readonly kind: "sse"; readonly transport: SseTransport };

/** One client, from its first request until it goes, is swept, or its token ends. */
export interface Session {
  readonly id: string;
  readonly workspaceId: number;
  /** The token that opened it: nobody else reaches it. */
  readonly actor: string;
  readonly server: Server;
  readonly by: SessionTransport;
  /** The newest visit's, with which it is looked at again whether the token is still good. */
  caller: Caller;
  credential: Credential;
  /** Milliseconds (monotonic) of the last request. */
  lastSeenAt: number;
  /** Streams that are open now: one that listens is not idle. */
  streams: number;
  /** Those that are answered at once, by their ids, to be cancelled by. The SDK knows the others. */
  readonly requests: Map<RequestId, AbortController>;
  /** Requests that are being answered: one that waits for them is not idle, however long they take. */
  running: number;
  /** One that lost its stream is given less time than one that never had any. */
  hadStream: boolean;
  /** What it knows of its tools: as they were when it began, or when it was told last. */
  toldTools: readonly ToolView[];
}
