import { Problem } from "../base/errors.ts";
import { readVia } from "../base/via.ts";
import type { CallOrigin, Credential } from "../gate/gate.ts";
import { asJson, takes, withAccept } from "./accept.ts";
import { answerAtOnce, type PlainRequest, plainRequest, speaksKnownVersion } from "./at-once.ts";
import { isUnsolicited } from "./events.ts";
import { cancelledBy, countCalls, initializeOf, repeatsId, viaOf } from "./messages.ts";
import { ToolOffers } from "./offer.ts";
import { SessionOpener } from "./open-session.ts";
import { refuseForeign, urlOf } from "./origins.ts";
import type { McpParts, McpStreamPlace } from "./parts.ts";
import { answered, authInfo, type McpAnswer, refused, rpcResponse, streamComplete } from "./reply.ts";
import { RPC } from "./rpc-error.ts";
import { CANCELLED, isComplete, type McpSession } from "./session.ts";
import { McpSessions } from "./sessions.ts";
import { opened } from "./stream.ts";
import { ToolChanges } from "./tool-changes.ts";
import type { McpToolParts } from "./tools.ts";
import { RequestVisit } from "./visit.ts";
import { TaskWaiters } from "./waits.ts";

/**
 * Maximum number of messages in a body, the same as in the SDK. Each message is counted, so a body with a million
 * would block everything else.
 */
const BATCH = 100;
/** The path that supports both transports. */
const SSE_PATH = "/mcp/sse";

/** An HTTP request to the MCP endpoint, passed on by `http`. */
export interface McpRequest {
  readonly request: Request;
  readonly requestId: string;
  readonly credential: Credential;
  /** The client's address. */
  readonly source: string;
  /** Whether the path also supports the older transport. */
  readonly speaksSse: boolean;
  /** The session in the older transport's query parameter. */
  readonly sseSession: string | null;
  /**
   * Counts the request's connection for the caller's workspace.
   * @throws Problem 429
   */
  claimConnection(workspaceId: number): void;
  /**
   * @param workspaceId the workspace of the caller, who is already authenticated
   * @throws Problem 400, 413, 415, 429, 499
   */
  readBody(workspaceId: number): Promise<unknown>;
  /** Removes the connection's idle timeout, for streams. */
  keepOpen(): void;
}

/** The MCP endpoint over HTTP: both transports, their sessions, and the checks of each request by the gate. */
export class McpDoor {
  readonly #parts: McpToolParts;
  readonly #sessions: McpSessions;
  readonly #opener: SessionOpener;
  readonly #changes: ToolChanges;
  readonly #ends: (() => void)[];

  constructor(parts: McpParts) {
    const { clock, log, tokens, sessionStore: store } = parts;
    const offers = new ToolOffers(parts);
    this.#parts = { ...parts, offers, waits: new TaskWaiters() };
    const rightsEnd = ({ caller }: McpSession) => parts.gate.rightsEnd(caller);
    this.#sessions = new McpSessions({ clock, log, store, rightsEnd });
    this.#opener = new SessionOpener(this.#parts, this.#sessions);
    this.#changes = new ToolChanges({ clock, log, offers, sessions: this.#sessions });
    this.#ends = [
      tokens.changed.listen(() => this.#sessions.checkRights()),
      parts.agents.changed.listen((workspaceId) => this.#changes.note(workspaceId)),
      parts.registry.catalogue.changed.listen((workspaceId) => this.#changes.note(workspaceId)),
    ];
  }

  get openSessions(): number {
    return this.#sessions.size;
  }

  /** Ends or releases all sessions, and aborts their requests. */
  async stop(): Promise<void> {
    for (const end of this.#ends) end();
    this.#changes.stop();
    await this.#parts.waits.stop();
    await this.#sessions.stop();
  }

  async handle(asked: McpRequest): Promise<McpAnswer> {
    const { gate } = this.#parts;
    const origin: CallOrigin = {
      requestId: asked.requestId,
      channel: "mcp",
      credential: asked.credential,
      via: readVia(asked.request.headers),
      // Read only when needed: asking the operating system takes 1 µs per request.
      get source() {
        return asked.source;
      },
    };
    try {
      refuseForeign(asked.request.headers, this.#parts);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      return refused(await gate.turnAway(origin, error), origin);
    }
    const found = gate.identify(origin);
    const identified = found instanceof Promise ? await found : found;
    if (!identified.ok) return refused(identified, origin);
    const visit = new RequestVisit(origin, identified.caller, null);
    try {
      asked.claimConnection(identified.caller.workspaceId);
      switch (asked.request.method) {
        case "POST":
          return await this.#post(asked, visit);
        case "GET":
          return await this.#get(asked, visit);
        case "DELETE":
          return await this.#delete(asked, visit);
        default:
          // HEAD is routed like GET, but must not open or end a session.
          throw new Problem("method_not_allowed", "HEAD is not supported here. Use GET to open a stream.", {
            headers: { Allow: "DELETE, GET, POST" },
          });
      }
    } catch (error) {
      if (error instanceof Problem) return this.#refuse(visit, error);
      this.#parts.log.error("an MCP request failed", { request_id: asked.requestId, error });
      const problem = new Problem(
        "internal",
        "Something went wrong. Search the server's log for the request id.",
      );
      return { limit: null, ledgerSeq: null, outcome: { problem } };
    }
  }

  /**
   * Records a request that was refused before any call began. Counts it against the limit if it was not counted yet.
   */
  async #refuse(visit: RequestVisit, problem: Problem): Promise<McpAnswer> {
    const operation = { action: "session.use", scope: null, counted: visit.limit !== null } as const;
    const answer = await this.#parts.gate.perform<never>(operation, visit.origin, visit, () =>
      Promise.reject(problem),
    );
    return answer.ok ? answer.value : refused(answer, visit.origin);
  }

  async #post(asked: McpRequest, visit: RequestVisit): Promise<McpAnswer> {
    const body = await asked.readBody(visit.caller.workspaceId);
    // Checked first, because everything after it reads every message.
    if (Array.isArray(body) && body.length > BATCH) {
      const message = `The batch is too large: at most ${BATCH} messages are allowed.`;
      return answered(rpcResponse(400, RPC.invalidRequest, message), visit);
    }
    visit.addHops(viaOf(body));
    const loop = this.#parts.loops.refusal(visit.origin.via ?? []);
    // A refused loop is not recorded, because each entry would keep it alive.
    if (loop) return { limit: null, ledgerSeq: null, outcome: { problem: loop } };
    return this.#take(asked, visit, body);
  }

  async #take(asked: McpRequest, visit: RequestVisit, body: unknown): Promise<McpAnswer> {
    const { caller, origin } = visit;
    // The rights are checked again, because the body may have taken minutes to arrive.
    const confirming = this.#parts.gate.confirm(caller);
    if (confirming) await confirming;
    const counting = this.#parts.gate.count(origin, caller, countCalls(body));
    const counted = counting instanceof Promise ? await counting : counting;
    if (!counted.ok) return refused(counted, origin);
    visit.limit = counted.limit;
    if (asked.sseSession !== null) return this.#postToStream(asked.sseSession, body, visit);
    const id = asked.request.headers.get("mcp-session-id");
    if (id === null) return this.#initialize(asked, body, visit);
    const reached = this.#reach(id, visit);
    const session = reached instanceof Promise ? await reached : reached;
    const refusal = this.#refuseTwice(session, body, visit);
    if (refusal) return refusal;
    const request = this.#plain(asked, body);
    if (request) {
      asked.keepOpen();
      const reply = await answerAtOnce(this.#parts, session, visit, request);
      return { limit: visit.limit, ledgerSeq: reply.ledgerSeq, outcome: reply };
    }
    this.#cancel(session, body);
    if (Array.isArray(body)) session.hadBatch = true;
    return answered(await this.#pass(session, asked, visit, body), visit);
  }

  /** Two pending requests with the same id would be indistinguishable. */
  #refuseTwice({ requests }: McpSession, body: unknown, visit: RequestVisit): McpAnswer | undefined {
    if (!repeatsId(body, requests)) return undefined;
    return answered(
      rpcResponse(400, RPC.invalidRequest, "Another request with this id is still pending."),
      visit,
    );
  }

  /** The request, if it can be answered immediately to a client that accepts JSON. */
  #plain({ request }: McpRequest, body: unknown): PlainRequest | undefined {
    const { fixtures, registry } = this.#parts;
    if (!takes(request.headers).json || !speaksKnownVersion(request.headers)) return undefined;
    const plain = plainRequest(body, registry.catalogue.builtinConnectors);
    // Fixtures need a stream for their answers.
    return fixtures && plain?.method.startsWith("resources/") ? undefined : plain;
  }

  /** Opens a session for an initialize request. Any other message without a session is an error. */
  async #initialize(asked: McpRequest, body: unknown, visit: RequestVisit): Promise<McpAnswer> {
    const hello = initializeOf(body);
    if (!hello) {
      return answered(
        rpcResponse(
          400,
          RPC.server,
          "Send initialize first, and then the header Mcp-Session-Id with each request.",
        ),
        visit,
      );
    }
    const opening = await this.#opener.streamable(visit, hello);
    if (!opening.ok) return refused(opening, visit.origin);
    const session = opening.value;
    const response = await this.#pass(session, asked, visit, body);
    // It was refused, so the client never learned of the session.
    if (!response.ok) this.#sessions.end(session);
    return answered(response, visit, opening.ledgerSeq);
  }

  async #get(asked: McpRequest, visit: RequestVisit): Promise<McpAnswer> {
    const id = asked.request.headers.get("mcp-session-id");
    if (id !== null) {
      const session = await this.#reach(id, visit);
      if (isComplete(session, asked.request.headers.get("last-event-id"))) {
        return answered(streamComplete(), visit);
      }
      return this.#listen(session, asked, visit);
    }
    if (!asked.speaksSse) {
      throw new Problem(
        "method_not_allowed",
        "A stream belongs to a session: send the header Mcp-Session-Id.",
        {
          headers: { Allow: "POST" },
        },
      );
    }
    return this.#openOlder(asked, visit);
  }

  /** Opens a session's stream of unsolicited messages, or resumes a stream. */
  async #listen(session: McpSession, asked: McpRequest, visit: RequestVisit): Promise<McpAnswer> {
    const place = this.#parts.streams.take(session.workspaceId);
    let watched: Response | undefined;
    try {
      const store = this.#parts.sessionStore;
      const last = asked.request.headers.get("last-event-id");
      const isElsewhere = last !== null && (store?.isElsewhere(last) ?? false);
      const response =
        store && isElsewhere && !isUnsolicited(last)
          ? await store.resume(session, last)
          : await this.#pass(session, isElsewhere ? fromNow(asked) : asked, visit);
      if (!response.ok) return answered(response, visit);
      asked.keepOpen();
      watched = this.#watched(session, response, place);
      if (last === null || isUnsolicited(last)) await store?.tookStream(session);
      await this.#changes.look(session);
      return answered(watched, visit);
    } finally {
      if (!watched) place.release();
    }
  }

  /** Opens the only stream of a session of the older transport. The session begins and ends with it. */
  async #openOlder(asked: McpRequest, visit: RequestVisit): Promise<McpAnswer> {
    const endpoint = urlOf(asked.request, SSE_PATH, this.#parts);
    const place = this.#parts.streams.take(visit.caller.workspaceId);
    const opening = await this.#opener.sse(visit, (session) => `${endpoint}?sessionId=${session}`);
    if (!opening.ok) {
      place.release();
      return refused(opening, visit.origin);
    }
    const { by } = opening.value;
    if (by.kind !== "sse") throw new Error("an older stream has its own transport");
    asked.keepOpen();
    return answered(this.#watched(opening.value, by.transport.response, place), visit, opening.ledgerSeq);
  }

  async #delete(asked: McpRequest, visit: RequestVisit): Promise<McpAnswer> {
    const id = asked.request.headers.get("mcp-session-id");
    if (id === null) {
      return answered(
        rpcResponse(400, RPC.server, "Send the header Mcp-Session-Id of the session to end."),
        visit,
      );
    }
    const session = await this.#reach(id, visit);
    const operation = { action: "session.close", scope: null, counted: false } as const;
    const ended = await this.#parts.gate.perform(operation, visit.origin, visit, async () => {
      this.#sessions.end(session);
      await this.#parts.sessionStore?.settle();
    });
    if (!ended.ok) return refused(ended, visit.origin);
    return answered(new Response(null, { status: 200 }), visit, ended.ledgerSeq);
  }

  /** Takes a message of the older transport, whose answer goes to the stream. */
  #postToStream(id: string, body: unknown, visit: RequestVisit): McpAnswer {
    const { caller } = visit;
    const session = this.#sessions.find(id, caller.workspaceId, caller.actor);
    // A node that does not have its stream cannot answer.
    if (session?.by.kind !== "sse") throw unknownSession();
    this.#sessions.visit(session, caller);
    const { by } = session;
    const refusal = this.#refuseTwice(session, body, visit);
    if (refusal) return refusal;
    this.#cancel(session, body);
    try {
      by.transport.receive(body, { authInfo: authInfo(visit) });
    } catch {
      return answered(rpcResponse(400, RPC.invalidRequest, "The body is not a JSON-RPC message."), visit);
    }
    return answered(new Response("Accepted", { status: 202 }), visit);
  }

  /**
   * The caller's session of Streamable HTTP, opened here if another node has opened it.
   * @throws Problem 404 `not_found`
   */
  #reach(id: string, visit: RequestVisit): McpSession | Promise<McpSession> {
    const { caller } = visit;
    const session = this.#sessions.find(id, caller.workspaceId, caller.actor);
    const { sessionStore: store } = this.#parts;
    if (store && (!session || store.isDoubtful)) return this.#reopen(id, visit);
    if (session?.by.kind !== "streamable") throw unknownSession();
    this.#sessions.visit(session, caller);
    return session;
  }

  /** @throws Problem 404 `not_found`, 503 `ledger_unavailable` */
  async #reopen(id: string, visit: RequestVisit): Promise<McpSession> {
    const session = await this.#opener.reopen(id, visit);
    if (!session) throw unknownSession();
    this.#sessions.visit(session, visit.caller);
    return session;
  }

  /** Before the SDK sees the message, because it does not report who cancelled. */
  #cancel(session: McpSession, body: unknown): void {
    for (const id of cancelledBy(body)) {
      const request = session.requests.get(id);
      if (request) request.abort(CANCELLED);
      else if (session.by.kind === "streamable") this.#parts.sessionStore?.cancel(session, id);
    }
  }

  async #pass(
    session: McpSession,
    asked: McpRequest,
    visit: RequestVisit,
    body?: unknown,
  ): Promise<Response> {
    if (session.by.kind !== "streamable") throw new Error("the older transport takes its messages itself");
    const { request } = asked;
    const taken = takes(request.headers);
    const response = await session.by.transport.handleRequest(withAccept(request, taken), {
      authInfo: authInfo(visit),
      ...(body === undefined ? {} : { parsedBody: body }),
    });
    if (request.method !== "POST" || taken.stream || !taken.json) return response;
    // Nothing is sent until the whole answer is ready.
    asked.keepOpen();
    return asJson(response, (bytes) => this.#parts.answers.hold(session.workspaceId, bytes));
  }

  /** Keeps a session in use while its stream is open. */
  #watched(session: McpSession, response: Response, place: McpStreamPlace): Response {
    session.streams += 1;
    session.hadStream = true;
    const stream = opened(response, () => {
      place.release();
      session.streams -= 1;
      session.lastSeenAt = this.#parts.clock.monotonic();
    });
    place.endsBy(stream.end);
    return stream.response;
  }
}

/** Without the event after which a stream should be resumed. */
function fromNow(asked: McpRequest): McpRequest {
  const headers = new Headers(asked.request.headers);
  headers.delete("last-event-id");
  return { ...asked, request: new Request("http://localhost/", { headers }) };
}

function unknownSession(): Problem {
  return new Problem("not_found", "This MCP session does not exist or has ended. Initialize a new one.");
}
