import { capBody } from "../../../base/capped-body.ts";
import { asConnectorError, codeOf } from "../../outbound/errors.ts";
import type { OutboundInit } from "../../outbound/fetch.ts";
import { ConnectorError } from "../../source.ts";
import { isUnavailable, jsonTooLarge, MESSAGE_JSON, NotTaken } from "../faults.ts";
import type { UpstreamParts } from "../parts.ts";

/**
 * Maximum size in bytes of one message from an upstream over HTTP, as JSON or as one event: above the limit of an
 * answer.
 */
const MESSAGE_BYTES = 16 * 1024 * 1024;
/**
 * How long the server may take to accept a message that is not a request, or a request whose answer arrives
 * elsewhere. Otherwise a hanging server would keep each of them open until the connection ends.
 */
export const ACCEPT_MS = 30_000;
/** Nothing listened at the address, so the request was never sent. Codes of Bun and of Node. */
const NEVER_SENT = ["ConnectionRefused", "ECONNREFUSED"];

/** Sends one HTTP request to the upstream. @throws ConnectorError, or NotTaken if nothing listened */
export async function ask(url: string | URL, init: OutboundInit, parts: UpstreamParts): Promise<Response> {
  try {
    return await parts.fetch(url, init);
  } catch (error) {
    if (isUnavailable(error))
      throw new ConnectorError("unavailable", `The connector ${parts.name}: ${error.message}`);
    const fault = asConnectorError(error, `The connector ${parts.name}`);
    throw NEVER_SENT.includes(codeOf(error) ?? "") ? new NotTaken(fault) : fault;
  }
}

/**
 * The response, whose body fails with a ConnectorError if a message is too long, has too many values or is nested too
 * deeply.
 */
export function capMessages(response: Response, parts: Pick<UpstreamParts, "name" | "inflow">): Response {
  const mebibytes = MESSAGE_BYTES / 1024 / 1024;
  const text = `The connector ${parts.name} sent a message of more than ${mebibytes} MiB.`;
  return capBody(response, {
    bytes: MESSAGE_BYTES,
    json: MESSAGE_JSON,
    inflow: parts.inflow,
    tooLarge: () => new ConnectorError("too_large", text),
    jsonTooLarge: (excess) => jsonTooLarge(excess, parts),
  });
}

/** Whether a body ended because a message in it was refused. */
export function isPastCap(error: unknown): error is ConnectorError {
  return (
    error instanceof ConnectorError && (error.fault === "too_large" || error.fault === "nested_too_deep")
  );
}

/** Whether the SDK reports that it could not read a message. It reports its own exceptions in the same way. */
export function isUnreadable(error: Error): boolean {
  return error.name === "ZodError" || error.name === "SyntaxError";
}
