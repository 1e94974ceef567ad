import { redact } from "../../base/log.ts";
import { parseJson } from "../../base/nesting.ts";
import { RPC } from "../rpc-error.ts";
import { isRecord } from "./message.ts";

/** Why a message did not get through, in words for the client. */
export class BridgeError extends Error {
  override readonly name = "BridgeError";
  /** Of JSON-RPC. */
  readonly code: number;
  readonly data: Readonly<Record<string, unknown>> | undefined;
  /** Of HTTP, where the door has answered. */
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

/** The door does not know the session: the server has restarted, or swept it. */
export class SessionLost extends BridgeError {}

/** Bytes of a refusal that are read. */
const REFUSAL_BYTES = 64 * 1024;

/** What a door says that does not take a message: a problem's JSON (RFC 9457), or an error of JSON-RPC. */
export async function refusalOf(response: Response, inSession: boolean): Promise<BridgeError> {
  const { status } = response;
  const body = await readSome(response);
  const detail = isRecord(body) && typeof body.detail === "string" ? body.detail : undefined;
  const rpc = isRecord(body) && isRecord(body.error) ? body.error : undefined;
  const said = detail ?? (typeof rpc?.message === "string" ? rpc.message : undefined);
  const message = said ?? `The server answered ${status}: is this Gatehouse's address?`;
  const data =
    isRecord(body) && typeof body.code === "string" ? { code: body.code, ...idIn(body) } : undefined;
  // An address that is wrong answers 404 as well, and has no session.
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
    // It broke off, or is a page of something else that answers there: the status says enough.
    return undefined;
  }
}
