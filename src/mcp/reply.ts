import type { AuthInfo } from "@modelcontextprotocol/sdk/server/auth/types.js";
import type { Problem } from "../base/errors.ts";
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

export function refused(answer: Refused): McpAnswer {
  const { limit, ledgerSeq, problem } = answer;
  return { limit, ledgerSeq, outcome: { problem } };
}

/** A message that was not read, as JSON-RPC has it: its id is not known. */
export function refusedMessage(answer: Refused, { origin }: Visit): McpAnswer {
  const { limit, ledgerSeq, problem } = answer;
  const { code, message, data } = rpcError(problem, origin.requestId, ledgerSeq);
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
