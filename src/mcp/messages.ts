import type { RequestId } from "@modelcontextprotocol/sdk/types.js";
import { readMeta, VIA_META, type Via } from "../base/via.ts";

/** Looks into what a client posted, before the SDK judges it. */

/** Characters of what a client calls itself that are kept in the evidence. */
const CLIENT_LENGTH = 100;

/** What the protocol itself needs, and what stops work: it MUST get through while a flood has taken the limit. */
const UNCOUNTED: ReadonlySet<unknown> = new Set([
  "ping",
  "notifications/initialized",
  "notifications/cancelled",
]);

/** Messages in a body that count against the limit; answers of the client do not. */
export function countCalls(body: unknown): number {
  let count = 0;
  for (const message of messagesOf(body)) {
    const method = field(message, "method");
    if (method !== undefined && !UNCOUNTED.has(method)) count += 1;
  }
  return count;
}

/** The requests that a body cancels. */
export function cancelledBy(body: unknown): RequestId[] {
  return messagesOf(body)
    .filter((message) => field(message, "method") === "notifications/cancelled")
    .map((message) => field(field(message, "params"), "requestId"))
    .filter(isRequestId);
}

/** The ids of the requests in a body. */
export function requestIdsOf(body: unknown): RequestId[] {
  return messagesOf(body)
    .filter((message) => typeof field(message, "method") === "string")
    .map((message) => field(message, "id"))
    .filter(isRequestId);
}

/** The Gatehouses that a body's requests have passed, as far as they name them themselves. */
export function viaOf(body: unknown): Via {
  if (!Array.isArray(body)) return readMeta(field(field(body, "params"), "_meta"), VIA_META);
  return [
    ...new Set(body.flatMap((message) => readMeta(field(field(message, "params"), "_meta"), VIA_META))),
  ];
}

function messagesOf(body: unknown): readonly unknown[] {
  return Array.isArray(body) ? body : [body];
}

function isRequestId(id: unknown): id is RequestId {
  return typeof id === "string" || typeof id === "number";
}

/** What a client says of itself. */
export interface Hello {
  readonly protocol: string;
  readonly client: string;
}

/** What an initialize request says of its client; undefined where the body holds none. */
export function initializeOf(body: unknown): Hello | undefined {
  const hello = messagesOf(body).find((message) => field(message, "method") === "initialize");
  if (hello === undefined) return undefined;
  const params = field(hello, "params");
  const info = field(params, "clientInfo");
  const client = `${text(field(info, "name"))} ${text(field(info, "version"))}`.trim();
  return {
    protocol: text(field(params, "protocolVersion")).slice(0, CLIENT_LENGTH),
    client: client.slice(0, CLIENT_LENGTH),
  };
}

function field(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
