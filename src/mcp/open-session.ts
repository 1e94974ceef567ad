import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import type { RequestId } from "@modelcontextprotocol/sdk/types.js";
import type { Caller } from "../access/caller.ts";
import type { RandomSource } from "../base/ids.ts";
import { redact } from "../base/log.ts";
import { SharedWork } from "../base/shared-work.ts";
import { VERSION } from "../base/version.ts";
import type { CallResult } from "../gate/gate.ts";
import { SessionEventMemory, SessionEvents } from "./events.ts";
import type { ClientInfo } from "./messages.ts";
import { createServer } from "./server.ts";
import type { McpSession, SessionTransport, StreamableTransport } from "./session.ts";
import type { McpSessions } from "./sessions.ts";
import { SseTransport } from "./sse-transport.ts";
import type { McpToolParts } from "./tools.ts";
import type { RequestVisit } from "./visit.ts";

/** Interval of keep-alives on the stream of a slow answer. */
const KEEP_ALIVE_MS = 10_000;
/** How long a client waits before it reconnects a lost stream (specification 2025-11-25, `retry`). */
const RETRY_MS = 1_000;
/**
 * The error code for a cancelled request, from the Language Server Protocol, on which MCP's cancellation is based.
 */
const REQUEST_CANCELLED = -32_800;

/** Opens sessions, each with its own server and transport. */
export class SessionOpener {
  readonly #parts: McpToolParts;
  readonly #sessions: McpSessions;
  readonly #memory = new SessionEventMemory();
  readonly #reopening = new SharedWork<McpSession | undefined>();

  constructor(parts: McpToolParts, sessions: McpSessions) {
    this.#parts = parts;
    this.#sessions = sessions;
  }

  /** Opens a session of Streamable HTTP. Never throws. */
  streamable(visit: RequestVisit, hello: ClientInfo): Promise<CallResult<McpSession>> {
    return this.#open(visit, hello, (id) => {
      return this.#transport(id, visit.caller.workspaceId);
    });
  }

  /**
   * Opens a session that this node does not serve, or no longer surely. Its client takes no part in that.
   * @returns undefined if the caller has no such session
   * @throws Problem 429 `rate_limited`, 503 `ledger_unavailable`
   */
  reopen(id: string, { caller }: RequestVisit): Promise<McpSession | undefined> {
    return this.#reopening.run(`${caller.workspaceId} ${caller.actor} ${id}`, () => this.#reopen(id, caller));
  }

  async #reopen(id: string, caller: Caller): Promise<McpSession | undefined> {
    const { workspaceId, actor } = caller;
    const stored = await this.#parts.sessionStore?.find(id, caller);
    const served = this.#sessions.find(id, workspaceId, actor);
    if (served && !stored) this.#sessions.end(served);
    if (served || !stored) return stored && served;
    this.#sessions.makeRoom(workspaceId);
    const by = this.#transport(id, workspaceId);
    const session = this.#create(id, by, caller, stored.toldTools);
    await session.server.connect(by.transport);
    await handshake(by);
    this.#serve(session);
    return session;
  }

  #transport(id: string, workspaceId: number): StreamableTransport {
    const events = new SessionEvents(this.#memory, workspaceId, this.#parts.sessionStore?.eventPrefix);
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => id,
      eventStore: events,
      keepAliveMs: KEEP_ALIVE_MS,
      retryInterval: RETRY_MS,
    });
    return { kind: "streamable", transport, events };
  }

  /**
   * Opens a session of the older HTTP+SSE. `endpointOf` returns the URL where the session with this id takes
   * messages. Never throws.
   */
  sse(visit: RequestVisit, endpointOf: (id: string) => string): Promise<CallResult<McpSession>> {
    const { clock, answers } = this.#parts;
    const hold = (bytes: number) => answers.hold(visit.caller.workspaceId, bytes);
    return this.#open(visit, { protocol: "2024-11-05", client: "" }, (id) => ({
      kind: "sse",
      transport: new SseTransport(id, endpointOf(id), clock, hold),
    }));
  }

  async #open(
    visit: RequestVisit,
    hello: ClientInfo,
    transportOf: (id: string) => SessionTransport,
  ): Promise<CallResult<McpSession>> {
    const { gate, offers, ids, random, sessionStore } = this.#parts;
    const { caller, origin } = visit;
    const operation = { action: "session.open", scope: null, counted: true } as const;
    let made: McpSession | undefined;
    const opening = await gate.perform(operation, origin, visit, async (call) => {
      const client = redact(hello.client);
      call.about({ detail: { protocol: hello.protocol, ...(client === "" ? {} : { client }) } });
      const offer = await offers.of(caller);
      const digest = await offer.digest();
      this.#sessions.makeRoom(caller.workspaceId);
      // As random as a secret, because the specification requires ids that cannot be guessed.
      const id = `${ids("req").slice(4)}${secretPart(random)}`;
      const by = transportOf(id);
      const session = this.#create(id, by, caller, digest);
      if (by.kind === "streamable") await sessionStore?.add(call, session);
      made = session;
      await session.server.connect(by.transport);
      this.#serve(session);
      return session;
    });
    // The entry could not be written, so the session is not announced to anyone.
    if (!opening.ok && made) this.#sessions.end(made);
    return opening;
  }

  #create(id: string, by: SessionTransport, caller: Caller, toldTools: string): McpSession {
    const { clock, log } = this.#parts;
    const requests = new Map<RequestId, AbortController>();
    const server = createServer(this.#parts, {
      began: (requestId, abort) => void requests.set(requestId, abort),
      ended(requestId) {
        requests.delete(requestId);
        session.lastSeenAt = clock.monotonic();
      },
      cancelled: (requestId) => settle(by, requestId),
    });
    server.onerror = (error) =>
      log.debug("an MCP session's protocol error", { error: redact(error.message) });
    const { workspaceId, actor } = caller;
    const session: McpSession = {
      ...{ id, workspaceId, actor, server, by, caller, requests, toldTools },
      lastSeenAt: clock.monotonic(),
      streams: 0,
      hadStream: false,
      hadBatch: false,
    };
    this.#sessions.guard(session);
    return session;
  }

  #serve(session: McpSession): void {
    this.#sessions.add(session);
    // Also called if the client disconnects or the transport closes on its own.
    session.server.onclose = () => this.#sessions.end(session);
  }
}

/**
 * Opens a transport for a session whose client has already been greeted, perhaps by another node. The oldest version of
 * Streamable HTTP is enough: neither transport nor server depends on it later. This server asks its clients for nothing,
 * so it needs to know neither their names nor what they can do.
 */
async function handshake({ transport, events }: StreamableTransport): Promise<void> {
  const hello = {
    jsonrpc: "2.0",
    id: 0,
    method: "initialize",
    params: {
      protocolVersion: "2025-03-26",
      capabilities: {},
      clientInfo: { name: "gatehouse", version: VERSION },
    },
  };
  const headers = { accept: "application/json, text/event-stream", "content-type": "application/json" };
  const request = new Request("http://localhost/", { method: "POST", headers });
  const response = await transport.handleRequest(request, { parsedBody: hello });
  // The transport is ready once it has sent all of its answer.
  await response.text();
  if (!response.ok) throw new Error("the transport refused its own handshake");
  events.forget();
}

/**
 * Answers a cancelled request. The SDK sends no answer, keeps the request's state for the life of the session, and
 * lets its client resume an empty stream. An answer, which clients ignore for cancelled requests, ends all of that.
 * The older transport has nothing waiting for one.
 */
function settle(by: SessionTransport, id: RequestId): void {
  if (by.kind !== "streamable") return;
  const error = { code: REQUEST_CANCELLED, message: "The request was cancelled." };
  // It was answered at the same moment, or its session has ended.
  by.transport.send({ jsonrpc: "2.0", id, error }).catch(() => {});
}

function secretPart(random: RandomSource): string {
  const bytes = new Uint8Array(16);
  random(bytes);
  return Buffer.from(bytes).toString("hex");
}
