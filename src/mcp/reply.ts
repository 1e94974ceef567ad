import type { AuthInfo } from "@modelcontextprotocol/sdk/server/auth/types.js";
import type { Problem } from "../base/errors.ts";
import type { CallOrigin } from "../gate/gate.ts";
import type { RequestLimit } from "../gate/requests.ts";
import type { PlainReply } from "./at-once.ts";
import { RPC, rpcError } from "./rpc-error.ts";
import type { RequestVisit } from "./visit.ts";

/** An answer of the MCP endpoint, from which `http` makes a response. */
export interface McpAnswer {
  readonly limit: RequestLimit | null;
  readonly ledgerSeq: number | null;
  readonly outcome: { readonly response: Response } | { readonly problem: Problem } | PlainReply;
}

export function answered(
  response: Response,
  { limit }: RequestVisit,
  ledgerSeq: number | null = null,
): McpAnswer {
  return { limit, ledgerSeq, outcome: { response } };
}

interface Refused {
  readonly problem: Problem;
  readonly limit: RequestLimit | null;
  readonly ledgerSeq: number | null;
}

/**
 * The answer to a refused request. If its message was nested too deeply to be read, the answer is a JSON-RPC error
 * without an id.
 */
export function refused({ limit, ledgerSeq, problem }: Refused, { requestId }: CallOrigin): McpAnswer {
  if (problem.code !== "nested_too_deep") return { limit, ledgerSeq, outcome: { problem } };
  const { code, message, data } = rpcError(problem, requestId, ledgerSeq);
  const body = { jsonrpc: "2.0", error: { code, message, data }, id: null };
  return { limit, ledgerSeq, outcome: { response: Response.json(body, { status: problem.status }) } };
}

/** An error at the protocol level, as a JSON-RPC response. */
export function rpcResponse(status: number, code: number, message: string): Response {
  return Response.json({ jsonrpc: "2.0", error: { code, message }, id: null }, { status });
}

/** Nothing more follows on a stream whose answer the client already has. Clients ignore this answer. */
export function streamComplete(): Response {
  const nothing = rpcResponse(405, RPC.server, "This stream is complete.");
  nothing.headers.set("Allow", "DELETE, POST");
  return nothing;
}

/** Passes the visit through the SDK to the handlers. The token's secret is not passed on. */
export function authInfo(visit: RequestVisit): AuthInfo {
  return { token: "", clientId: visit.caller.actor, scopes: [], extra: { visit } };
}
