import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import type { JSONRPCRequest, RequestId, Result as RpcResult } from "@modelcontextprotocol/sdk/types.js";
import type { JsonSchemaValidator, jsonSchemaValidator } from "@modelcontextprotocol/sdk/validation/types.js";
import { VERSION } from "../base/version.ts";
import { answer } from "./answer.ts";
import { RPC, RpcError } from "./rpc-error.ts";
import { CANCELLED, GONE } from "./session.ts";
import type { McpToolParts } from "./tools.ts";
import { RequestVisit } from "./visit.ts";

const INSTRUCTIONS =
  "Gatehouse: the tools, agents and documents that this token may use. Each call is checked and recorded.";

/**
 * Never used: this server sends clients no requests with a schema. Shared, because each Server would otherwise create
 * its own Ajv.
 */
const NO_VALIDATOR: jsonSchemaValidator = {
  getValidator<Value>(): JsonSchemaValidator<Value> {
    return () => ({ valid: false, data: undefined, errorMessage: "no schema is expected here" });
  },
};

/** Notifications about a server's requests. */
export interface ServerEvents {
  began(requestId: RequestId, abort: AbortController): void;
  ended(requestId: RequestId): void;
  /** The client has cancelled the request. The SDK then sends no answer and leaves the waiting stream open. */
  cancelled(requestId: RequestId): void;
}

/**
 * The server of one session. Uses the low-level class with one handler for all methods, because `McpServer` converts
 * its schemas again for every list (100 lists/s instead of 4,800, with 200 tools).
 */
export function createServer(parts: McpToolParts, told: ServerEvents): Server {
  const server = new Server(
    { name: "gatehouse", title: "Gatehouse", version: VERSION },
    {
      capabilities: {
        tools: { listChanged: true },
        resources: {},
        ...parts.fixtures?.capabilities,
      },
      instructions: INSTRUCTIONS,
      jsonSchemaValidator: NO_VALIDATOR,
    },
  );
  // The SDK would answer this one itself, bypassing the gate.
  server.removeRequestHandler("logging/setLevel");
  server.fallbackRequestHandler = async (request: JSONRPCRequest, extra): Promise<RpcResult> => {
    const visit: unknown = extra.authInfo?.extra?.visit;
    // Without a visit, the request was not authenticated.
    if (!(visit instanceof RequestVisit))
      throw new RpcError(RPC.invalidRequest, "The request was not authenticated.");
    const { signal, requestId } = extra;
    const abort = new AbortController();
    const breakOff = () => {
      // If the client cancelled the request, it is already aborted with that reason.
      abort.abort(GONE);
      if (abort.signal.reason === CANCELLED) told.cancelled(requestId);
    };
    signal.addEventListener("abort", breakOff, { once: true });
    told.began(requestId, abort);
    try {
      const context = { visit, abort, stream: { server, extra } };
      const run = async () => {
        abort.signal.throwIfAborted();
        return answer(parts, context, request.method, request.params ?? {});
      };
      // Calls wait for upstreams and people, so they run in parallel. Their number is limited per workspace.
      return { ...(await (request.method === "tools/call" ? run() : visit.inTurn(run))) };
    } finally {
      told.ended(requestId);
    }
  };
  return server;
}
