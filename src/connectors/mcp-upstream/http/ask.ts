import { capBody } from "../../../base/capped-body.ts";
import { asConnectorError, codeOf } from "../../outbound/errors.ts";
import type { OutboundInit } from "../../outbound/fetch.ts";
import { ConnectorError } from "../../source.ts";
import { isUnavailable, jsonTooLarge, MESSAGE_JSON, NotTaken } from "../faults.ts";
import type { UpstreamParts } from "../parts.ts";

/** Bytes of one message from an upstream over HTTP, as JSON or as one event: more than any answer that is taken. */
const MESSAGE_BYTES = 16 * 1024 * 1024;
/**
 * How long a message that is no request, and the taking in of one where its answer comes elsewhere, may stay unanswered. A
 * server that hangs would else keep each of them open until the connection ends.
 */
export const ACCEPT_MS = 30_000;
/** Nothing listened at the address: the request was never sent. Bun's word and Node's. */
const NEVER_SENT = ["ConnectionRefused", "ECONNREFUSED"];

/** One HTTP request to the upstream. @throws ConnectorError; NotTaken where nothing listened */
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

/** The response, whose body fails with a ConnectorError at a message that is too long, too wide or nested too deeply. */
export function capMessages(response: Response, parts: Pick<UpstreamParts, "name">): Response {
  const mebibytes = MESSAGE_BYTES / 1024 / 1024;
  const text = `The connector ${parts.name} sent a message of more than ${mebibytes} MiB.`;
  return capBody(response, {
    bytes: MESSAGE_BYTES,
    json: MESSAGE_JSON,
    tooLarge: () => new ConnectorError("too_large", text),
    jsonTooLarge: (excess) => jsonTooLarge(excess, parts),
  });
}

/** Whether a body ended because a message in it is not taken. */
export function isPastCap(error: unknown): error is ConnectorError {
  return (
    error instanceof ConnectorError && (error.fault === "too_large" || error.fault === "nested_too_deep")
  );
}

/** Whether the SDK says that what it read is no message. It reports there, too, what it throws. */
export function isUnreadable(error: Error): boolean {
  return error.name === "ZodError" || error.name === "SyntaxError";
}
