import { type JsonLimits, MAX_NESTING, parseJson } from "../../base/json-limits.ts";

/**
 * Limits of a message. The server's answers may be a few levels deeper than its requests, because they contain a
 * tool's answer. They may have any number of members, because one answer lists the tools of all connectors.
 */
const MESSAGE_LIMITS: JsonLimits = { levels: MAX_NESTING + 8, members: Infinity };

export type MessageId = string | number;

/** The parts of a JSON-RPC message that the bridge needs. It leaves the rest to the server and the client. */
export interface BridgeMessage {
  readonly id?: MessageId;
  readonly method?: string;
  /** The request that a `notifications/cancelled` message cancels. */
  readonly cancels?: MessageId;
  /** The protocol version in the answer to `initialize`. */
  readonly protocolVersion?: string;
  /** The message as received, on one line. */
  readonly text: string;
}

/** The messages of a line: one, or those of a batch (version 2025-03-26). Undefined if it is not JSON-RPC. */
export function readMessages(line: string): readonly BridgeMessage[] | undefined {
  let value: unknown;
  try {
    value = parseJson(line, MESSAGE_LIMITS);
  } catch {
    return undefined;
  }
  if (!Array.isArray(value)) {
    const message = readMessage(value, line);
    return message && [message];
  }
  const messages = value.map((each: unknown) => readMessage(each));
  return messages.every((message) => message !== undefined) ? messages : undefined;
}

/** @param text the message as received; serialised again if left out or on several lines */
function readMessage(value: unknown, text = ""): BridgeMessage | undefined {
  if (!isRecord(value)) return undefined;
  const { id, method, params, result } = value;
  if (id !== undefined && id !== null && typeof id !== "string" && typeof id !== "number") return undefined;
  if (method !== undefined && typeof method !== "string") return undefined;
  const cancels =
    method === "notifications/cancelled" && isRecord(params) ? idOf(params.requestId) : undefined;
  const version = isRecord(result) ? result.protocolVersion : undefined;
  return {
    ...(id === undefined || id === null ? {} : { id }),
    ...(method === undefined ? {} : { method }),
    ...(cancels === undefined ? {} : { cancels }),
    ...(typeof version === "string" ? { protocolVersion: version } : {}),
    text: text === "" || /[\r\n]/.test(text) ? JSON.stringify(value) : text,
  };
}

/** The id of a request that expects an answer. */
export function requestId({ id, method }: BridgeMessage): MessageId | undefined {
  return method === undefined ? undefined : id;
}

/** The id of the request that a message answers. */
export function answeredId({ id, method }: BridgeMessage): MessageId | undefined {
  return method === undefined ? id : undefined;
}

function idOf(value: unknown): MessageId | undefined {
  return typeof value === "string" || typeof value === "number" ? value : undefined;
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
