import { ConnectorError } from "../../source.ts";
import { NotTaken, shown } from "../faults.ts";
import type { UpstreamParts } from "../parts.ts";

/** Bytes of an answer with an error status that are read, and characters of it that are repeated. */
const READ_BYTES = 16_384;
const SHOWN_CHARACTERS = 300;

/**
 * What a status other than 2xx says. Reads the beginning of the body and lets go of the rest.
 * @param inSession the request named a session
 */
export async function refusedStatus(
  response: Response,
  inSession: boolean,
  parts: UpstreamParts,
): Promise<ConnectorError | NotTaken> {
  const body = await beginning(response);
  const said = shown(body.replace(/\s+/g, " "), parts, SHOWN_CHARACTERS);
  const fault = new ConnectorError(
    "refused",
    `The connector ${parts.name} answered with status ${response.status}${said && `: ${said}`}`,
  );
  return inSession && isSessionLost(response.status, body) ? new NotTaken(fault) : fault;
}

/** The specification says 404 (2025-11-25, "Session Management"); many servers, its own examples too, say 400 in words. */
function isSessionLost(status: number, body: string): boolean {
  return status === 404 || (status === 400 && /session/i.test(body));
}

async function beginning(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  const reader = response.body?.getReader();
  let text = "";
  try {
    while (reader && text.length < READ_BYTES) {
      const part = await reader.read();
      if (part.done) break;
      text += decoder.decode(part.value.subarray(0, READ_BYTES), { stream: true });
    }
    await reader?.cancel();
  } catch {
    // The status is what counts; a body that breaks off only says less.
  }
  return text;
}
