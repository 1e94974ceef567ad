import type { Server } from "@modelcontextprotocol/sdk/server/index.js";
import type { RequestHandlerExtra } from "@modelcontextprotocol/sdk/shared/protocol.js";
import type { ServerNotification, ServerRequest } from "@modelcontextprotocol/sdk/types.js";
import type { NamedScope } from "../access/scopes.ts";
import type { ToolProgress } from "../connectors/source.ts";
import type { Call } from "../gate/call.ts";
import type { McpParts } from "./parts.ts";
import { rpcError } from "./rpc-error.ts";
import type { RequestVisit } from "./visit.ts";

export type RequestExtra = RequestHandlerExtra<ServerRequest, ServerNotification>;
export type Params = Readonly<Record<string, unknown>>;
export type RpcResult = Readonly<Record<string, unknown>>;

/** The context of one JSON-RPC request. */
export interface RequestContext {
  readonly visit: RequestVisit;
  /**
   * Aborted when the client cancels or the session ends. Belongs to this request only, so its handler may also abort
   * it.
   */
  readonly abort: AbortController;
  /** For sending messages in addition to the answer; null for a request that is answered immediately. */
  readonly stream: RequestStream | null;
}

export interface RequestStream {
  readonly server: Server;
  readonly extra: RequestExtra;
}

export interface Performed<Value> {
  readonly value: Value;
  readonly ledgerSeq: number | null;
}

/**
 * Runs one call through the gate.
 * @throws RpcError
 */
export async function perform<Value>(
  { gate }: Pick<McpParts, "gate">,
  { visit }: RequestContext,
  operation: { readonly action: string; readonly scope: NamedScope | null },
  handle: (call: Call) => Promise<Value>,
): Promise<Performed<Value>> {
  // It was already counted, together with its HTTP request.
  const counted = { action: operation.action, scope: operation.scope, counted: true } as const;
  const answer = await gate.perform(counted, visit.origin, visit, handle);
  if (!answer.ok) throw rpcError(answer.problem, visit.origin.requestId, answer.ledgerSeq);
  return { value: answer.value, ledgerSeq: answer.ledgerSeq };
}

const LEDGER = "gatehouse/ledger";

/** Adds the seq of the answer's ledger entry, like the REST header `Gatehouse-Ledger`. */
export function withLedger(result: RpcResult, ledgerSeq: number | null): RpcResult {
  return ledgerSeq === null ? result : { ...result, _meta: { [LEDGER]: ledgerSeq } };
}

/** The seq that `withLedger` added. */
export function ledgerSeqOf({ _meta: meta }: RpcResult): number | null {
  const seq: unknown = typeof meta === "object" && meta !== null ? Reflect.get(meta, LEDGER) : undefined;
  return typeof seq === "number" ? seq : null;
}

/**
 * Returns a function that sends progress, if the client asked for it. Progress MUST increase (specification,
 * "Progress"), so a value that does not is raised slightly above the last.
 */
export function progressOf({ stream }: RequestContext): ((progress: ToolProgress) => void) | undefined {
  const progressToken = stream?.extra._meta?.progressToken;
  if (!stream || progressToken === undefined) return undefined;
  let last = 0;
  return ({ progress, total, message }) => {
    last = progress > last ? progress : last + Number.EPSILON * Math.max(1, last) * 4;
    const params = {
      progressToken,
      progress: last,
      ...(total === undefined ? {} : { total }),
      ...(message === undefined ? {} : { message }),
    };
    // A disconnected client reads no progress. The call learns of the disconnection by itself.
    stream.extra.sendNotification({ method: "notifications/progress", params }).catch(() => {});
  };
}
