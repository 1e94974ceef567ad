import type { Server } from "bun";
import type { DocumentDecoration } from "elysia";
import Type, { type Static, type TObject, type TProperties, type TSchema } from "typebox";
import type { Ids } from "../base/ids.ts";
import { enterTurn } from "../base/inflow.ts";
import { type Validator, validator } from "../base/schema.ts";
import { readVia } from "../base/via.ts";
import type { Call } from "../gate/call.ts";
import type { Gate, Operation } from "../gate/gate.ts";
import { callHeaders, problemResponse, type Reply, shortResponse } from "./answer/answer.ts";
import { type ClientForm, clientHeaders } from "./answer/client-errors.ts";
import type { LongAnswers } from "./answer/long-answers.ts";
import { type BodyReading, isEmpty, type RawBody, readJson, readRawJson } from "./body/body.ts";
import type { BodyShares } from "./body/shares.ts";
import {
  readAnyCredential,
  readBrowserCredential,
  readClientCredential,
  readSignIn,
} from "./caller/credential.ts";
import type { OpenCalls } from "./connections/open-calls.ts";
import type { Metrics } from "./metrics.ts";
import { type DescribedOperation, operationDetail } from "./operation.ts";
import { readQuery } from "./query.ts";

/** The dependencies that all endpoints share. */
export interface EndpointContext {
  readonly gate: Pick<Gate, "call">;
  readonly ids: Ids;
  readonly metrics: Metrics;
  /** The memory for bodies being read. */
  readonly bodies: BodyShares;
  /** The memory for long responses. */
  readonly answers: Pick<LongAnswers, "reply" | "relay">;
  /** The calls that hold a connection. */
  readonly openCalls: Pick<OpenCalls, "claim">;
  /** Null before the server listens. Elysia's context has it as well, but adds it to each with a getter (0.3 µs). */
  server(): Server<unknown> | null;
  /** Known only to this process and to users who can read its data directory. */
  readonly operatorSecret: string;
  /** The configured URL that clients use, without a trailing slash. */
  readonly publicUrl: string | null;
}

export interface EndpointSpec<Body extends TSchema, Query extends TProperties>
  extends Omit<DescribedOperation, "body" | "query"> {
  /**
   * Whether the call counts against the request limit. False for streams; a function if it depends on the request.
   * Default true. `later`: see `Operation`.
   */
  readonly counted?: Operation["counted"] | ((request: Request) => boolean);
  /** Never refused because of the request limit. */
  readonly urgent?: true;
  readonly body?: Body;
  /** Reads the body as JSON, and keeps its bytes for the handler until the handler returns or releases them. */
  readonly raw?: true;
  /** Its clients are existing programs: they may send their secret as `x-api-key`, and get errors in this form. */
  readonly client?: ClientForm;
  /** Signs a browser in: ignores cookies and accepts one-time links as well as tokens. */
  readonly signsIn?: true;
  /** Maximum bytes of a body, if not the default. */
  readonly bodyLimit?: number;
  /** Maximum members of a JSON body, if not the default. */
  readonly bodyMembers?: number;
  /** The response may take minutes, so the connection has no idle timeout. */
  readonly slow?: true;
  readonly query?: TObject<Query>;
}

export interface EndpointInput<Body extends TSchema, Query extends TProperties> {
  readonly call: Call;
  readonly params: Readonly<Record<string, string>>;
  readonly body: Static<Body>;
  /** Only if the endpoint asks for it. */
  readonly raw: RawBody | undefined;
  readonly query: Static<TObject<Query>>;
  readonly request: Request;
}

/** The parts of Elysia's context that an endpoint uses. */
interface RouteContext {
  readonly request: Request;
  readonly params: Readonly<Record<string, string>>;
}

export interface Endpoint {
  handle(context: RouteContext): Promise<Response>;
  /** Elysia does not read the body, because the caller must be authenticated and authorised first. */
  readonly hook: { readonly parse: "none"; readonly detail: DocumentDecoration };
}

const NOTHING = Type.Object({}, { additionalProperties: false });
const BROWSER_HEADERS = { "cache-control": "no-store", "x-content-type-options": "nosniff" };

/**
 * Creates one route: its description in the document, its call through the gate and its response. A Reply becomes
 * JSON.
 */
export function endpoint<Body extends TSchema = TObject, Query extends TProperties = TProperties>(
  endpoints: EndpointContext,
  spec: EndpointSpec<Body, Query>,
  handle: (input: EndpointInput<Body, Query>) => Promise<Reply | StreamReply>,
): Endpoint {
  const body: Validator<Body> | undefined = spec.body && validator(spec.body);
  const querySchema: TObject = spec.query ?? NOTHING;
  const query = validator(querySchema);
  const { counted = true, client } = spec;
  const readClient = client?.browsers ? readAnyCredential : readClientCredential;
  const readCaller = spec.signsIn ? readSignIn : client ? readClient : readBrowserCredential;

  async function answer({ request, params }: RouteContext): Promise<Response> {
    const server = endpoints.server();
    const requestId = endpoints.ids("req");
    const credential = readCaller({ request, publicUrl: endpoints.publicUrl }, endpoints.operatorSecret);
    const origin = {
      requestId,
      channel: "rest",
      credential,
      via: readVia(request.headers),
      get source() {
        return server?.requestIP(request)?.address ?? "local";
      },
    } as const;
    const operation = {
      action: spec.action,
      scope: spec.scope,
      counted: typeof counted === "function" ? counted(request) : counted,
      urgent: spec.urgent === true,
    };
    let reply: Reply | StreamReply | undefined;
    const result = await endpoints.gate.call(operation, origin, async (call) => {
      const { workspaceId } = call.caller;
      claimConnection(endpoints, request, workspaceId);
      const reading = {
        workspaceId,
        shares: endpoints.bodies,
        limit: spec.bodyLimit,
        members: spec.bodyMembers,
      };
      const given = body && (await readBody(request, spec.bodyOptional === true, reading));
      const raw = spec.raw && (await readRawJson(request, reading));
      try {
        // Many bodies may end in one turn, and what follows may take milliseconds each.
        const turn = (body || raw) && !operation.urgent ? enterTurn(workspaceId) : undefined;
        if (turn) await turn;
        // The rights are checked again, because a body may take minutes to arrive.
        const asked = (body || raw) && call.requireRights();
        if (asked) await asked;
        if (spec.slow) server?.timeout(request, 0);
        const made = await handle({
          call,
          params,
          request,
          body: body ? body.parse(given) : (undefined as Static<Body>),
          raw,
          query: query.parse(readQuery(request.url, querySchema)) as Static<TObject<Query>>,
        });
        reply = "stream" in made ? made : endpoints.answers.reply({ workspaceId, requestId, request }, made);
        return reply;
      } finally {
        raw?.release();
      }
    });
    const headers: Record<string, string> = callHeaders({
      requestId,
      ledgerSeq: result.ledgerSeq,
      limit: result.limit,
    });
    if (client) Object.assign(headers, clientHeaders(requestId));
    // The response must not stay in the browser for its next user, nor be interpreted as a page.
    if (credential.kind === "session") Object.assign(headers, BROWSER_HEADERS);
    if (!result.ok) {
      // The entry could not be written, so the stream's resources are released.
      if (reply && "stream" in reply) reply.abandon();
      endpoints.metrics.answered[result.problem.status < 500 ? "4xx" : "5xx"].inc();
      const respond = client?.problemResponse ?? problemResponse;
      return respond(result.problem, headers, requestId, request);
    }
    endpoints.metrics.answered["2xx"].inc();
    if (!("stream" in result.value)) return shortResponse(result.value, headers);
    server?.timeout(request, 0);
    return result.value.stream(headers, (seconds = 1) => server?.timeout(request, seconds));
  }

  return {
    handle: ({ request, params }) => answer({ request, params }),
    hook: { parse: "none", detail: operationDetail(spec) },
  };
}

/** A streamed response, made once the call itself is recorded, with the call's headers. */
export interface StreamReply {
  /**
   * `expire` sets the connection's idle timeout in seconds (default 1), even if the client has not read everything.
   * There is no timeout while the stream runs.
   */
  stream(headers: Record<string, string>, expire: (seconds?: number) => void): Response;
  /** Called instead of `stream` if there will be no response. */
  abandon(): void;
}

/**
 * Counts a call's connection for its workspace, as soon as its caller is known.
 * @throws Problem 429 `rate_limited`
 */
export function claimConnection(
  { openCalls, metrics }: Pick<EndpointContext, "openCalls" | "metrics">,
  request: Request,
  workspaceId: number,
): void {
  try {
    openCalls.claim(request, workspaceId);
  } catch (error) {
    metrics.callsWithoutRoom.inc();
    throw error;
  }
}

async function readBody(request: Request, optional: boolean, reading: BodyReading): Promise<unknown> {
  return optional && isEmpty(request) ? {} : readJson(request, reading);
}
