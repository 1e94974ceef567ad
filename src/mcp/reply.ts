import type { AuthInfo } from "@modelcontextprotocol/sdk/server/auth/types.js";
import type { Problem } from "../base/errors.ts";
import type { RequestLimit } from "../gate/requests.ts";
import type { PlainReply } from "./at-once.ts";
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

export function refused(answer: {
  readonly problem: Problem;
  readonly limit: RequestLimit | null;
  readonly ledgerSeq: number | null;
}): McpAnswer {
  const { limit, ledgerSeq, problem } = answer;
  return { limit, ledgerSeq, outcome: { problem } };
}

/** What the protocol refuses, as JSON-RPC says it. */
export function rpcResponse(status: number, code: number, message: string): Response {
  return Response.json({ jsonrpc: "2.0", error: { code, message }, id: null }, { status });
}

/** How the SDK hands what the door knows to the handlers; the secret stays at the door. */
export function authInfo(visit: Visit): AuthInfo {
  return { token: "", clientId: visit.caller.actor, scopes: [], extra: { visit } };
}
