import type { Server } from "bun";
import type { DocumentDecoration } from "elysia";
import Type, { type Static, type TObject, type TProperties, type TSchema } from "typebox";
import type { NamedScope } from "../access/scopes.ts";
import type { Ids } from "../base/ids.ts";
import { type Validator, validator } from "../base/schema.ts";
import { readVia } from "../base/via.ts";
import type { Call } from "../gate/call.ts";
import type { Gate } from "../gate/gate.ts";
import { callHeaders, jsonResponse, problemResponse, type Reply } from "./answer.ts";
import { type BodyReading, isEmpty, readJson } from "./body.ts";
import type { BodyShares } from "./body-shares.ts";
import { readBrowserCredential, readSignIn } from "./credential.ts";
import type { Metrics } from "./metrics.ts";
import { operationDetail } from "./operation.ts";
import { readQuery } from "./query.ts";

/** What every endpoint stands on. */
export interface Door {
  readonly gate: Pick<Gate, "call">;
  readonly ids: Ids;
  readonly metrics: Metrics;
  /** The memory for bodies that are being read. */
  readonly bodies: BodyShares;
  /** Known only to this process and to who may read its data directory. */
  readonly operatorSecret: string;
  /** What clients see, where it is configured; without a slash at its end. */
  readonly publicUrl: string | null;
}

export interface EndpointSpec<Body extends TSchema, Query extends TProperties> {
  /** `noun.verb` of the ledger. */
  readonly action: string;
  /** Where another operation has the same action. Default: the action, with `_` for the dot. */
  readonly operationId?: string;
  /** Null: any caller; what it may touch is checked on its way, thing by thing. */
  readonly scope: NamedScope | null;
  /** One line for the OpenAPI document. */
  readonly summary: string;
  readonly tag: string;
  /** False for streams, or a function of the request where it depends. Default true. */
  readonly counted?: boolean | ((request: Request) => boolean);
  /** Never refused for the request limit. */
  readonly urgent?: true;
  readonly body?: Body;
  /** It signs a browser in: no cookie counts, and a one-time link does, beside a token. */
  readonly signsIn?: true;
  /** A call without a body counts as `{}`. */
  readonly bodyOptional?: boolean;
  /** Bytes that a body may have, where it is not the usual limit. */
  readonly bodyLimit?: number;
  /** Members that the JSON of a body may have, where it is not the usual limit. */
  readonly bodyMembers?: number;
  /** The answer may take minutes: the connection is not given up for its silence. */
  readonly slow?: true;
  readonly query?: TObject<Query>;
  /** Request headers that it reads, each with what it is for. */
  readonly headers?: Readonly<Record<string, string>>;
  /** It answers 200 with server-sent events, always or when the query asks for them: a task's, or those described here. */
  readonly streams?: true | string;
  /** Media types of its answer, where JSON is not the only one; the first is what it answers when none is asked for. */
  readonly formats?: readonly string[];
  readonly status: number;
}

export interface EndpointInput<Body extends TSchema, Query extends TProperties> {
  readonly call: Call;
  readonly params: Readonly<Record<string, string>>;
  readonly body: Static<Body>;
  readonly query: Static<TObject<Query>>;
  readonly request: Request;
}

/** The parts of Elysia's context that an endpoint takes. */
interface Context {
  readonly request: Request;
  readonly params: Readonly<Record<string, string>>;
  readonly server: Server<unknown> | null;
}

export interface Endpoint {
  handle(context: Context): Promise<Response>;
  /** Elysia reads no body by itself: who calls, and whether they may, is settled before a byte of it is read. */
  readonly hook: { readonly parse: "none"; readonly detail: DocumentDecoration };
}

const NOTHING = Type.Object({}, { additionalProperties: false });
const BROWSER_HEADERS = { "cache-control": "no-store", "x-content-type-options": "nosniff" };

/** One route: its place in the document, its way through the gate, and its answer. A Reply becomes JSON. */
export function endpoint<Body extends TSchema = TObject, Query extends TProperties = TProperties>(
  door: Door,
  spec: EndpointSpec<Body, Query>,
  handle: (input: EndpointInput<Body, Query>) => Promise<Reply | StreamReply>,
): Endpoint {
  const body: Validator<Body> | undefined = spec.body && validator(spec.body);
  const querySchema: TObject = spec.query ?? NOTHING;
  const query = validator(querySchema);
  const { counted = true } = spec;
  const readCaller = spec.signsIn ? readSignIn : readBrowserCredential;

  async function answer({ request, params, server }: Context): Promise<Response> {
    const requestId = door.ids("req");
    const credential = readCaller({ request, publicUrl: door.publicUrl }, door.operatorSecret);
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
      counted: typeof counted === "boolean" ? counted : counted(request),
      urgent: spec.urgent === true,
    };
    let reply: Reply | StreamReply | undefined;
    const result = await door.gate.call(operation, origin, async (call) => {
      const { workspaceId } = call.caller;
      const reading = {
        workspaceId,
        shares: door.bodies,
        limit: spec.bodyLimit,
        members: spec.bodyMembers,
      };
      const given = body && (await readBody(request, spec.bodyOptional === true, reading));
      // A body may take minutes to come.
      const asked = body && call.requireRights();
      if (asked) await asked;
      if (spec.slow) server?.timeout(request, 0);
      reply = await handle({
        call,
        params,
        request,
        body: body ? body.parse(given) : (undefined as Static<Body>),
        query: query.parse(readQuery(request.url, querySchema)) as Static<TObject<Query>>,
      });
      return reply;
    });
    const headers = callHeaders({ requestId, ledgerSeq: result.ledgerSeq, limit: result.limit });
    // Nothing of it stays in a browser for who sits down there next, or is taken by it for a page.
    if (credential.kind === "session") Object.assign(headers, BROWSER_HEADERS);
    if (!result.ok) {
      // Its entry could not be written: what the stream has taken is given back.
      if (reply && "stream" in reply) reply.abandon();
      door.metrics.answered[result.problem.status < 500 ? "4xx" : "5xx"].inc();
      return problemResponse(result.problem, headers, requestId);
    }
    door.metrics.answered["2xx"].inc();
    if (!("stream" in result.value)) return jsonResponse(result.value, headers);
    server?.timeout(request, 0);
    return result.value.stream(headers, (seconds = 1) => server?.timeout(request, seconds));
  }

  return {
    handle: ({ request, params, server }) => answer({ request, params, server }),
    hook: { parse: "none", detail: operationDetail(spec) },
  };
}

/** An answer that goes on: made once the call itself is recorded, with its headers. */
export interface StreamReply {
  /**
   * `expire` lets the connection end after some seconds (1) without a sign of life, whatever the client has not taken yet:
   * while the stream goes on, it does not.
   */
  stream(headers: Record<string, string>, expire: (seconds?: number) => void): Response;
  /** Called in place of `stream` when there will be none. */
  abandon(): void;
}

async function readBody(request: Request, optional: boolean, reading: BodyReading): Promise<unknown> {
  return optional && isEmpty(request) ? {} : readJson(request, reading);
}
