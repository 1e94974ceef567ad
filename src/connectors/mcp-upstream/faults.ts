import type { McpError } from "@modelcontextprotocol/sdk/types.js";
import { type JsonExcess, type JsonLimits, MAX_NESTING } from "../../base/json-limits.ts";
import { ownText } from "../../base/own-text.ts";
import { ConnectorError } from "../source.ts";
import type { UpstreamParts } from "./parts.ts";

/** Maximum number of characters of an upstream's text that an error repeats. */
const MESSAGE_LIMIT = 1_000;

const MAX_MESSAGE_MEMBERS = 100_000;
/** The limits of one message: twice what other JSON may have, since a page of tools may hold a thousand schemas. */
export const MESSAGE_JSON: JsonLimits = { members: MAX_MESSAGE_MEMBERS };

/**
 * The upstream certainly did not accept the request: its session was gone, or nothing listened. It is safe to repeat
 * on another connection. Never leaves this folder.
 */
export class NotTaken extends Error {
  override readonly name = "NotTaken";
  readonly fault: ConnectorError;

  constructor(fault: ConnectorError) {
    super(fault.message);
    this.fault = fault;
  }
}

/** An upstream's text in a form that may be shown: masked, then cut, so that no half of a secret remains. */
export function shown(text: string, { mask }: Pick<UpstreamParts, "mask">, limit = MESSAGE_LIMIT): string {
  const masked = mask.text(text).trim();
  return ownText(masked.length > limit ? `${masked.slice(0, limit).toWellFormed()}…` : masked);
}

/** The upstream sent JSON that is nested too deeply or has too many values. */
export function jsonTooLarge(excess: JsonExcess, { name }: Pick<UpstreamParts, "name">): ConnectorError {
  const [fault, what] =
    excess === "levels"
      ? (["nested_too_deep", `more than ${MAX_NESTING} levels`] as const)
      : (["too_large", `more than ${MAX_MESSAGE_MEMBERS} members`] as const);
  return new ConnectorError(fault, `The connector ${name} sent a JSON message with ${what}.`);
}

export function cancelled({ name }: UpstreamParts): ConnectorError {
  return new ConnectorError("cancelled", `The call to the connector ${name} was cancelled.`);
}

export function closed({ name }: UpstreamParts): ConnectorError {
  return new ConnectorError("unreachable", `The connector ${name} was closed.`);
}

/** The upstream's own JSON-RPC error. It has no cause: a cause would carry the unmasked text into a log. */
export function refusal(error: McpError, parts: UpstreamParts): ConnectorError {
  // The SDK puts the code first.
  const said = shown(error.message.replace(/^MCP error -?\d+: /, ""), parts);
  return new ConnectorError(
    "refused",
    `The connector ${parts.name} answered with error ${error.code}: ${said}`,
  );
}

/**
 * Whether nothing was sent because a limit of in-flight requests is reached. Such an error says nothing about the
 * upstream.
 */
export function isUnavailable(error: unknown): error is ConnectorError {
  return error instanceof ConnectorError && error.fault === "unavailable";
}

/** The same fault with one more sentence. */
export function adding(fault: ConnectorError, sentence: string): ConnectorError {
  const { cause, output } = fault;
  return new ConnectorError(fault.fault, `${fault.message} ${sentence}`, { cause, output });
}
