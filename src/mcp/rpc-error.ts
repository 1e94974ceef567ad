import type { Problem, ProblemCode } from "../base/errors.ts";
import { redact } from "../base/log.ts";

/** Error codes of JSON-RPC 2.0, and those that MCP and this server add in the range reserved for servers. */
export const RPC = {
  parse: -32_700,
  invalidRequest: -32_600,
  methodNotFound: -32_601,
  invalidParams: -32_602,
  internal: -32_603,
  server: -32_000,
  sessionNotFound: -32_001,
  resourceNotFound: -32_002,
  forbidden: -32_003,
  unavailable: -32_004,
  rateLimited: -32_029,
} as const;

/** An error answer for a client. `data.code` is the corresponding REST error. */
export class RpcError extends Error {
  override readonly name = "RpcError";
  readonly code: number;
  readonly data: Readonly<Record<string, unknown>> | undefined;
  /** The seq of the refused call's entry. */
  readonly ledgerSeq: number | null;

  constructor(
    code: number,
    message: string,
    data?: Readonly<Record<string, unknown>>,
    ledgerSeq: number | null = null,
  ) {
    super(message);
    this.code = code;
    this.data = data;
    this.ledgerSeq = ledgerSeq;
  }
}

/** A refusal by the gate as an MCP error. */
export function rpcError(problem: Problem, requestId: string, ledgerSeq: number | null): RpcError {
  const { code, errors } = problem;
  const data = {
    code,
    request_id: requestId,
    ...(ledgerSeq === null ? {} : { ledger: ledgerSeq }),
    ...(errors ? { errors: JSON.parse(redact(JSON.stringify(errors))) } : {}),
  };
  return new RpcError(rpcCode(problem.code, problem.status), redact(problem.message), data, ledgerSeq);
}

function rpcCode(code: ProblemCode, status: number): number {
  if (code === "unknown_tool" || code === "validation_failed" || code === "agent_not_found") {
    return RPC.invalidParams;
  }
  if (code === "nested_too_deep") return RPC.invalidRequest;
  if (code === "not_found") return RPC.resourceNotFound;
  if (code === "rate_limited" || code === "queue_full") return RPC.rateLimited;
  if (status === 503) return RPC.unavailable;
  return status >= 500 ? RPC.internal : RPC.forbidden;
}
