import { parseJson } from "../../../base/json-limits.ts";
import { ConnectorError } from "../../source.ts";
import { NotTaken, shown } from "../faults.ts";
import type { UpstreamParts } from "../parts.ts";
import { isObject } from "../shape.ts";

/**
 * Maximum number of bytes read of an error response; also the maximum number of its characters that an error repeats.
 */
const READ_BYTES = 16_384;
const SHOWN_CHARACTERS = 300;
/** The status that a Gatehouse returns for a request that it sent itself (RFC 5842, section 7.2). */
const LOOP_DETECTED = 508;
/**
 * What servers that do not know the session send with 400, before they process the request: the TypeScript SDK
 * (`validateSession`), its examples and server-everything, and the Python SDK, as JSON-RPC errors or as the whole
 * text. Only exact matches count, since a tool that has acted may also mention sessions.
 */
const SESSION_LOST: ReadonlySet<unknown> = new Set([
  "Bad Request: No valid session ID provided",
  "Bad Request: No valid session ID",
  "Bad Request: Mcp-Session-Id header is required",
  "Bad Request: Missing session ID",
  "Bad Request: Server not initialized",
  "Session not found",
]);

/**
 * The error for a status other than 2xx. Reads the beginning of the body and drops the rest.
 * @param inSession the request named a session
 */
export async function refusedStatus(
  response: Response,
  inSession: boolean,
  parts: Pick<UpstreamParts, "name" | "mask">,
): Promise<ConnectorError | NotTaken> {
  const body = await beginning(response);
  if (response.status === LOOP_DETECTED) {
    return new ConnectorError("refused", `The connector ${parts.name} leads back to this Gatehouse.`);
  }
  // Masked before anything is extracted: the mask would miss half a secret, or a secret without its spaces.
  const masked = parts.mask.text(body.text, { end: !body.isWhole });
  const said = shown(masked.replace(/\s+/g, " "), parts, SHOWN_CHARACTERS);
  const fault = new ConnectorError(
    "refused",
    `The connector ${parts.name} answered with status ${response.status}${said && `: ${said}`}`,
  );
  return inSession && isSessionLost(response.status, body) ? new NotTaken(fault) : fault;
}

/**
 * The specification requires 404 (2025-11-25, "Session Management"). Many servers, including its own examples, send
 * 400 with a plain-text message.
 */
function isSessionLost(status: number, { text, isWhole }: BodyStart): boolean {
  return status === 404 || (status === 400 && isWhole && SESSION_LOST.has(messageOf(text)));
}

/** The message of a JSON-RPC error; the whole text if it is anything else. */
function messageOf(text: string): unknown {
  try {
    const value = parseJson(text);
    return isObject(value) && isObject(value.error) ? value.error.message : undefined;
  } catch {
    // Not JSON.
    return text.trim();
  }
}

interface BodyStart {
  readonly text: string;
  /** False if there was more, or may have been. */
  readonly isWhole: boolean;
}

async function beginning(response: Response): Promise<BodyStart> {
  const decoder = new TextDecoder();
  const reader = response.body?.getReader();
  if (!reader) return { text: "", isWhole: true };
  let text = "";
  let left = READ_BYTES;
  try {
    while (left > 0) {
      const part = await reader.read();
      if (part.done) return { text: text + decoder.decode(), isWhole: true };
      // Drops a character that is cut in two.
      text += decoder.decode(part.value.subarray(0, left), { stream: true });
      left -= part.value.length;
    }
    await reader.cancel();
  } catch {
    // The status decides. If the body is cut off, the message is merely shorter.
  }
  return { text, isWhole: false };
}
