import { Elysia } from "elysia";
import type { Problem } from "../../base/errors.ts";
import type { Credential } from "../../gate/gate.ts";
import type { RequestLimit } from "../../gate/requests.ts";
import { callHeaders, problemResponse, type Reply, shortResponse } from "../answer/answer.ts";
import type { AnsweredRequest } from "../answer/long-answers.ts";
import { readJson } from "../body/body.ts";
import { readCredential } from "../caller/credential.ts";
import { claimConnection, type EndpointContext } from "../endpoint.ts";

/** The MCP implementation. These routes pass HTTP requests to it and return its answers. */
export interface McpRouteParts {
  handle(asked: {
    readonly request: Request;
    readonly requestId: string;
    readonly credential: Credential;
    readonly source: string;
    readonly speaksSse: boolean;
    readonly sseSession: string | null;
    claimConnection(workspaceId: number): void;
    readBody(workspaceId: number): Promise<unknown>;
    keepOpen(): void;
  }): Promise<{
    readonly limit: RequestLimit | null;
    readonly ledgerSeq: number | null;
    readonly outcome: { readonly response: Response } | { readonly problem: Problem } | JsonOutcome;
  }>;
}

interface JsonOutcome {
  readonly status: number;
  /** Text or encoded parts; null if there is no body. */
  readonly json: string | readonly Uint8Array[] | null;
  /** With the content type, if there is a body. */
  readonly headers: Readonly<Record<string, string>>;
}

/** The workspace of a request that was refused before its caller was known: its answer is short. */
const NOBODY = 0;

interface Context {
  readonly request: Request;
}

/** Streamable HTTP at `/mcp`, and both transports at `/mcp/sse` (contract, section 8). */
export function mcpRoutes(endpoints: EndpointContext, mcp: McpRouteParts) {
  async function answer(request: Request, speaksSse: boolean): Promise<Response> {
    const server = endpoints.server();
    const requestId = endpoints.ids("req");
    let workspaceId = NOBODY;
    const { limit, ledgerSeq, outcome } = await mcp.handle({
      request,
      requestId,
      credential: readCredential(request.headers, endpoints.operatorSecret),
      get source() {
        return server?.requestIP(request)?.address ?? "local";
      },
      speaksSse,
      sseSession: speaksSse ? sessionOf(request.url) : null,
      claimConnection(caller) {
        workspaceId = caller;
        claimConnection(endpoints, request, caller);
      },
      readBody: (caller) => readJson(request, { workspaceId: caller, shares: endpoints.bodies }),
      keepOpen: () => server?.timeout(request, 0),
    });
    const headers = callHeaders({ requestId, ledgerSeq, limit });
    if ("problem" in outcome) {
      endpoints.metrics.answered[outcome.problem.status < 500 ? "4xx" : "5xx"].inc();
      return problemResponse(outcome.problem, headers, requestId);
    }
    if ("json" in outcome) {
      endpoints.metrics.answered["2xx"].inc();
      const reply = endpoints.answers.reply({ workspaceId, requestId, request }, replyOf(outcome));
      if (!("stream" in reply)) return shortResponse(reply, headers);
      return reply.stream(headers, (seconds = 1) => server?.timeout(request, seconds));
    }
    const response = relayed(outcome.response, { workspaceId, requestId, request });
    endpoints.metrics.answered[response.status < 400 ? "2xx" : "4xx"].inc();
    for (const [name, value] of Object.entries(headers)) response.headers.set(name, value);
    return response;
  }

  /** The streams of GET have their own places. */
  function relayed(response: Response, answered: AnsweredRequest): Response {
    if (answered.request.method !== "POST" || !response.body) return response;
    const { status, headers } = response;
    return new Response(endpoints.answers.relay(answered, response.body), { status, headers });
  }

  // Elysia does not read the body, because the caller must be authenticated and authorised first.
  const hook = { parse: "none", detail: { hide: true } } as const;
  const streamable = ({ request }: Context) => answer(request, false);
  const both = ({ request }: Context) => answer(request, true);
  return new Elysia({ prefix: "/mcp" })
    .post("", streamable, hook)
    .get("", streamable, hook)
    .delete("", streamable, hook)
    .post("/sse", both, hook)
    .get("/sse", both, hook)
    .delete("/sse", both, hook);
}

function replyOf({ status, json, headers }: JsonOutcome): Reply {
  if (json === null) return { status, headers };
  // Text that is sent as it is costs nothing more; 0.4 µs through parts.
  if (typeof json === "string") return { status, text: json, headers };
  const length = json.reduce((sum, part) => sum + part.length, 0);
  return { status, json: { length, parts: () => json }, headers };
}

/** Not with `URL`, which rejects an invalid Host header from the client. */
function sessionOf(url: string): string | null {
  const mark = url.indexOf("?");
  return mark < 0 ? null : new URLSearchParams(url.slice(mark + 1)).get("sessionId");
}
