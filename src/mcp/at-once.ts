import { type RequestId, SUPPORTED_PROTOCOL_VERSIONS } from "@modelcontextprotocol/sdk/types.js";
import { answer } from "./answer.ts";
import { FIND_TOOLS } from "./find-tools.ts";
import { ledgerSeqOf, type Params, type Result } from "./request.ts";
import { RpcError } from "./rpc-error.ts";
import { CANCELLED, type Session } from "./session.ts";
import { ToolPage } from "./tool-page.ts";
import type { ToolParts } from "./tools.ts";
import type { Visit } from "./visit.ts";

/** A request that needs no stream: the answer is all that is sent. */
export interface PlainRequest {
  readonly id: RequestId;
  readonly method: string;
  readonly params: Params;
}

const METHODS: ReadonlySet<unknown> = new Set([
  "tools/list",
  "tools/call",
  "resources/list",
  "resources/templates/list",
  "resources/read",
]);

/**
 * The request that a body holds, where this process answers it by itself and soon: lists, resources, builtin tools. Undefined
 * for everything else, which the SDK's transport takes: what wants progress, and what an upstream or an agent is asked.
 */
export function plainRequest(body: unknown, builtinConnectors: readonly string[]): PlainRequest | undefined {
  if (typeof body !== "object" || body === null || Array.isArray(body)) return undefined;
  const { jsonrpc, id, method, params = {}, ...rest }: Readonly<Record<string, unknown>> = { ...body };
  if (Object.keys(rest).length > 0) return undefined;
  if (jsonrpc !== "2.0" || typeof method !== "string" || !METHODS.has(method)) return undefined;
  if (typeof id !== "string" && !Number.isSafeInteger(id)) return undefined;
  if (!isObject(params) || "task" in params) return undefined;
  if (params._meta !== undefined && !(isObject(params._meta) && !("progressToken" in params._meta))) {
    return undefined;
  }
  if (method === "tools/call" && !isBuiltin(params.name, builtinConnectors)) return undefined;
  return { id: id as RequestId, method, params };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** By the name alone: no other connector can have one of these names. */
function isBuiltin(name: unknown, builtinConnectors: readonly string[]): boolean {
  if (typeof name !== "string") return false;
  return name === FIND_TOOLS || builtinConnectors.includes(name.split(/__|\./, 1)[0] ?? "");
}

/** Whether a client speaks a version that this server speaks; one that says none speaks the one that was agreed on. */
export function speaksKnownVersion(headers: Headers): boolean {
  const version = headers.get("mcp-protocol-version");
  return version === null || SUPPORTED_PROTOCOL_VERSIONS.includes(version);
}

/** An answer whose response is made with all of its headers at once. */
export interface PlainReply {
  readonly status: number;
  /** As text, or its parts encoded; null: it has no body. */
  readonly json: string | readonly Uint8Array[] | null;
  readonly headers: Readonly<Record<string, string>>;
  /** Of the call's entry; null where the body alone says it. */
  readonly ledgerSeq: number | null;
}

/**
 * Answers a plain request with JSON, past the SDK's transport and protocol, which parse each message with several schemas
 * and make a stream for each answer: a builtin tool's call took 179 µs of the processor that way, and takes 91; a list of 200
 * tools 560 and 98 (`scripts/bench mcp`, 64 sessions).
 */
export async function answerAtOnce(
  parts: ToolParts,
  session: Session,
  visit: Visit,
  { id, method, params }: PlainRequest,
): Promise<PlainReply> {
  const abort = new AbortController();
  session.requests.set(id, abort);
  const headers = { "mcp-session-id": session.id };
  const nothing = { status: 202, json: null, headers, ledgerSeq: null };
  try {
    const result = await answer(parts, { visit, abort, stream: null }, method, params);
    if (isCancelled(abort.signal)) return nothing;
    return { status: 200, json: encode(id, result), headers, ledgerSeq: ledgerSeqOf(result) };
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
    if (isCancelled(abort.signal)) return nothing;
    const { code, message, data } = error;
    const json = JSON.stringify({ jsonrpc: "2.0", id, error: { code, message, data } });
    return { status: 200, json, headers, ledgerSeq: error.ledgerSeq };
  } finally {
    session.requests.delete(id);
    session.lastSeenAt = parts.clock.monotonic();
  }
}

/** By the client, or with its session: who cancels hears nothing more of it. */
function isCancelled({ reason }: AbortSignal): boolean {
  return reason === CANCELLED;
}

const encoder = new TextEncoder();

function encode(id: RequestId, result: Result): PlainReply["json"] {
  const { tools, ...rest } = result;
  if (!(tools instanceof ToolPage)) return JSON.stringify({ jsonrpc: "2.0", id, result });
  const others = JSON.stringify(rest).slice(1, -1);
  const head = encoder.encode(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"tools":`);
  return [head, tools.encoded(), encoder.encode(`${others && ","}${others}}}`)];
}
