import type { AuthInfo } from "@modelcontextprotocol/sdk/server/auth/types.js";
import type { Problem } from "../base/errors.ts";
import type { Origin } from "../gate/gate.ts";
import type { RequestLimit } from "../gate/requests.ts";
import type { PlainReply } from "./at-once.ts";
import { rpcError } from "./rpc-error.ts";
import type { Visit } from "./visit.ts";

/** What the door answers; `http` makes a response of it. */
export interface McpAnswer {
  readonly limit: RequestLimit | null;
  readonly ledgerSeq: number | null;
  readonly outcome: { readonly response: Response } | { readonly problem: Problem } | PlainReply;
}

export function answered(response: Response, { limit }: Visit, ledgerSeq: number | null = null): McpAnswer {
  return { limit, ledgerSeq, outcome: { response } };
}

interface Refused {
  readonly problem: Problem;
  readonly limit: RequestLimit | null;
  readonly ledgerSeq: number | null;
}

/** A refused request. If its message was too deep to be read, JSON-RPC says so, without the id that nobody knows. */
export function refused({ limit, ledgerSeq, problem }: Refused, { requestId }: Origin): McpAnswer {
  if (problem.code !== "nested_too_deep") return { limit, ledgerSeq, outcome: { problem } };
  const { code, message, data } = rpcError(problem, requestId, ledgerSeq);
  const body = { jsonrpc: "2.0", error: { code, message, data }, id: null };
  return { limit, ledgerSeq, outcome: { response: Response.json(body, { status: problem.status }) } };
}

/** What the protocol refuses, as JSON-RPC says it. */
export function rpcResponse(status: number, code: number, message: string): Response {
  return Response.json({ jsonrpc: "2.0", error: { code, message }, id: null }, { status });
}

/** How the SDK hands what the door knows to the handlers; the secret stays at the door. */
export function authInfo(visit: Visit): AuthInfo {
  return { token: "", clientId: visit.caller.actor, scopes: [], extra: { visit } };
}
