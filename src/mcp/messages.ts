import type { RequestId } from "@modelcontextprotocol/sdk/types.js";

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
  const messages: readonly unknown[] = Array.isArray(body) ? body : [body];
  let count = 0;
  for (const message of messages) {
    const method = field(message, "method");
    if (method !== undefined && !UNCOUNTED.has(method)) count += 1;
  }
  return count;
}

/** The request that a body cancels; undefined where it cancels none. */
export function cancelledBy(body: unknown): RequestId | undefined {
  if (field(body, "method") !== "notifications/cancelled") return undefined;
  const id = field(field(body, "params"), "requestId");
  return typeof id === "string" || typeof id === "number" ? id : undefined;
}

/** What an initialize request says of its client; undefined where the body holds none. */
export function initializeOf(
  body: unknown,
): { readonly protocol: string; readonly client: string } | undefined {
  const messages: readonly unknown[] = Array.isArray(body) ? body : [body];
  const hello = messages.find((message) => field(message, "method") === "initialize");
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
