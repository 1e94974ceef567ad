import { parseJson } from "../../../base/nesting.ts";
import { ConnectorError } from "../../source.ts";
import { NotTaken, shown } from "../faults.ts";
import type { UpstreamParts } from "../parts.ts";
import { isObject } from "../shape.ts";

/** Bytes of an answer with an error status that are read, and characters of it that are repeated. */
const READ_BYTES = 16_384;
const SHOWN_CHARACTERS = 300;
/** What a Gatehouse answers to a request that it has sent itself (RFC 5842, section 7.2). */
const LOOP_DETECTED = 508;
/**
 * What servers say with 400 where they do not know the session, before they look at the request any further: the TypeScript
 * SDK (`validateSession`), its examples and server-everything, and the Python SDK, as JSON-RPC errors or as the whole text.
 * Nothing that only resembles them counts, since a tool that has acted may speak of sessions, too.
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
 * What a status other than 2xx says. Reads the beginning of the body and lets go of the rest.
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
  // Masked before anything is taken out of it: half of a secret, or one without its blanks, would not be found.
  const masked = parts.mask.text(body.text, { end: !body.isWhole });
  const said = shown(masked.replace(/\s+/g, " "), parts, SHOWN_CHARACTERS);
  const fault = new ConnectorError(
    "refused",
    `The connector ${parts.name} answered with status ${response.status}${said && `: ${said}`}`,
  );
  return inSession && isSessionLost(response.status, body) ? new NotTaken(fault) : fault;
}

/** The specification says 404 (2025-11-25, "Session Management"); many servers, its own examples too, say 400 in words. */
function isSessionLost(status: number, { text, isWhole }: Beginning): boolean {
  return status === 404 || (status === 400 && isWhole && SESSION_LOST.has(messageOf(text)));
}

/** The message of a JSON-RPC error; of any other text, all of it. */
function messageOf(text: string): unknown {
  try {
    const value = parseJson(text);
    return isObject(value) && isObject(value.error) ? value.error.message : undefined;
  } catch {
    // It is no JSON.
    return text.trim();
  }
}

interface Beginning {
  readonly text: string;
  /** False where there was more, or may have been. */
  readonly isWhole: boolean;
}

async function beginning(response: Response): Promise<Beginning> {
  const decoder = new TextDecoder();
  const reader = response.body?.getReader();
  if (!reader) return { text: "", isWhole: true };
  let text = "";
  let left = READ_BYTES;
  try {
    while (left > 0) {
      const part = await reader.read();
      if (part.done) return { text: text + decoder.decode(), isWhole: true };
      // A character that is cut in two is left out.
      text += decoder.decode(part.value.subarray(0, left), { stream: true });
      left -= part.value.length;
    }
    await reader.cancel();
  } catch {
    // The status is what counts; a body that breaks off only says less.
  }
  return { text, isWhole: false };
}
