import type { Server } from "@modelcontextprotocol/sdk/server/index.js";
import type { RequestHandlerExtra } from "@modelcontextprotocol/sdk/shared/protocol.js";
import type { ServerNotification, ServerRequest } from "@modelcontextprotocol/sdk/types.js";
import type { NamedScope } from "../access/scopes.ts";
import type { Progress } from "../connectors/source.ts";
import type { Call } from "../gate/call.ts";
import type { McpParts } from "./parts.ts";
import { rpcError } from "./rpc-error.ts";
import type { Visit } from "./visit.ts";

export type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>;
export type Params = Readonly<Record<string, unknown>>;
export type Result = Readonly<Record<string, unknown>>;

/** One JSON-RPC request on its way. */
export interface RequestContext {
  readonly visit: Visit;
  /** Aborted when the client cancels, or its session ends. Of this request alone: whoever serves it may abort it too. */
  readonly abort: AbortController;
  /** By which more than the answer can be sent; null for a request that is answered at once. */
  readonly stream: RequestStream | null;
}

export interface RequestStream {
  readonly server: Server;
  readonly extra: Extra;
}

export interface Performed<Value> {
  readonly value: Value;
  readonly ledgerSeq: number | null;
}

/** Takes one call the way of every call. @throws RpcError */
export async function perform<Value>(
  { gate }: Pick<McpParts, "gate">,
  { visit }: RequestContext,
  operation: { readonly action: string; readonly scope: NamedScope | null },
  handle: (call: Call) => Promise<Value>,
): Promise<Performed<Value>> {
  // It was counted at the door, with the request that it came in.
  const answer = await gate.perform({ ...operation, counted: true }, visit.origin, visit, handle);
  if (!answer.ok) throw rpcError(answer.problem, visit.origin.requestId, answer.ledgerSeq);
  return { value: answer.value, ledgerSeq: answer.ledgerSeq };
}

const LEDGER = "gatehouse/ledger";

/** Where the evidence of an answer is: what `Gatehouse-Ledger` says over REST. */
export function withLedger(result: Result, ledgerSeq: number | null): Result {
  return ledgerSeq === null ? result : { ...result, _meta: { [LEDGER]: ledgerSeq } };
}

/** What `withLedger` has put there. */
export function ledgerSeqOf({ _meta: meta }: Result): number | null {
  const seq: unknown = typeof meta === "object" && meta !== null ? Reflect.get(meta, LEDGER) : undefined;
  return typeof seq === "number" ? seq : null;
}

/**
 * Sends progress to a client that asked for it. What it says MUST grow (specification, "Progress"): what does not is
 * raised a little above the last.
 */
export function progressOf({ stream }: RequestContext): ((progress: Progress) => void) | undefined {
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
    // A client that has gone reads no progress; that it has gone, the call itself learns.
    stream.extra.sendNotification({ method: "notifications/progress", params }).catch(() => {});
  };
}
