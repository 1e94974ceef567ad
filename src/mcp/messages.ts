import type { RequestId } from "@modelcontextprotocol/sdk/types.js";
import { field } from "../base/json.ts";
import { readMeta, VIA_META, type Via } from "../base/via.ts";

/** These functions inspect what a client posted, before the SDK validates it. */

/** Maximum characters of a client's name that are recorded. */
const CLIENT_LENGTH = 100;

/**
 * Methods that the protocol itself needs, or that stop work. They MUST get through even when a flood has used up the
 * limit.
 */
const UNCOUNTED: ReadonlySet<unknown> = new Set([
  "ping",
  "notifications/initialized",
  "notifications/cancelled",
]);

/** Number of messages in a body that count against the limit. The client's answers do not. */
export function countCalls(body: unknown): number {
  let count = 0;
  for (const message of messagesOf(body)) {
    const method = field(message, "method");
    if (method !== undefined && !UNCOUNTED.has(method)) count += 1;
  }
  return count;
}

/** The ids of the requests that a body cancels. */
export function cancelledBy(body: unknown): RequestId[] {
  return messagesOf(body)
    .filter((message) => field(message, "method") === "notifications/cancelled")
    .map((message) => field(field(message, "params"), "requestId"))
    .filter(isRequestId);
}

/** Whether a request in a body has the id of a pending request, or of another one in the body. */
export function repeatsId(body: unknown, pending: ReadonlyMap<RequestId, unknown>): boolean {
  const ids = new Set<RequestId>();
  for (const message of messagesOf(body)) {
    const id = field(message, "id");
    if (typeof field(message, "method") !== "string" || !isRequestId(id)) continue;
    if (ids.has(id) || pending.has(id)) return true;
    ids.add(id);
  }
  return false;
}

/** The Gatehouse instances that a body's requests have passed through, as stated by the requests themselves. */
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

/** How a client introduces itself. */
export interface ClientInfo {
  readonly protocol: string;
  readonly client: string;
}

/** What an initialize request says about its client; undefined if the body has none. */
export function initializeOf(body: unknown): ClientInfo | undefined {
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

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
