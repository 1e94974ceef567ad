import { parseJson } from "../../base/json-limits.ts";
import { redact } from "../../base/log.ts";
import { RPC } from "../rpc-error.ts";
import { isRecord } from "./message.ts";

/** Why a message was not delivered, in words for the client. */
export class BridgeError extends Error {
  override readonly name = "BridgeError";
  /** The JSON-RPC error code. */
  readonly code: number;
  readonly data: Readonly<Record<string, unknown>> | undefined;
  /** The HTTP status, if the server responded. */
  readonly status: number | undefined;

  constructor(
    code: number,
    message: string,
    more: { readonly data?: Readonly<Record<string, unknown>> | undefined; readonly status?: number } = {},
  ) {
    super(redact(message));
    this.code = code;
    this.data = more.data;
    this.status = more.status;
  }
}

/** The server does not know the session: it has restarted, or removed an idle session. */
export class SessionLost extends BridgeError {}

/** Maximum bytes read of an error response. */
const REFUSAL_BYTES = 64 * 1024;

/** Reads an error response: a problem's JSON (RFC 9457) or a JSON-RPC error. */
export async function refusalOf(response: Response, inSession: boolean): Promise<BridgeError> {
  const { status } = response;
  const body = await readSome(response);
  const detail = isRecord(body) && typeof body.detail === "string" ? body.detail : undefined;
  const rpc = isRecord(body) && isRecord(body.error) ? body.error : undefined;
  const said = detail ?? (typeof rpc?.message === "string" ? rpc.message : undefined);
  const message = said ?? `The server answered ${status}. Check that the URL belongs to a Gatehouse server.`;
  const data =
    isRecord(body) && typeof body.code === "string" ? { code: body.code, ...idIn(body) } : undefined;
  // A wrong URL also gives 404, but then there is no session.
  if (status === 404 && inSession) return new SessionLost(RPC.unavailable, message, { data, status });
  const code = typeof rpc?.code === "number" ? rpc.code : codeOf(status);
  return new BridgeError(code, message, { data, status });
}

function idIn(problem: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return typeof problem.request_id === "string" ? { request_id: problem.request_id } : {};
}

function codeOf(status: number): number {
  if (status === 401 || status === 403) return RPC.forbidden;
  if (status === 429) return RPC.rateLimited;
  if (status >= 500 || status === 404) return RPC.unavailable;
  return RPC.invalidRequest;
}

async function readSome(response: Response): Promise<unknown> {
  const decoder = new TextDecoder();
  let text = "";
  try {
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk, { stream: true });
      if (text.length > REFUSAL_BYTES) return undefined;
    }
    return parseJson(text);
  } catch {
    // The response was cut off or came from some other program, such as a web page. The status is enough.
    return undefined;
  }
}
