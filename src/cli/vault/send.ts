import { pause, systemClock } from "../../base/clock.ts";
import { OperatorError } from "../../base/errors.ts";
import { type OperatorApi, refusal } from "../operator.ts";

/** Maximum number of attempts against a busy gateway, which says when to retry. */
const TRIES = 60;
const LONGEST_WAIT_SECONDS = 60;

/** The user asked to stop: remaining files are not sent. Calls are aborted with this reason. */
export class UploadInterrupted extends Error {
  override readonly name = "Interrupted";
}

/**
 * Sends a request, and repeats it when the gateway asks to wait (429, and 503 with `Retry-After`).
 * @throws the reason of `stop` while waiting; OperatorError if the gateway is gone
 */
export async function send(
  api: OperatorApi,
  method: "GET" | "POST",
  path: string,
  body: object | undefined,
  stop: AbortSignal,
): Promise<Response> {
  for (let attempt = 1; ; attempt++) {
    stop.throwIfAborted();
    const response = await api.fetch(method, path, body).catch(gone);
    const seconds = secondsToWait(response);
    if (seconds === undefined || attempt === TRIES) return response;
    await response.body?.cancel();
    await pause(seconds * 1_000, systemClock, stop);
  }
}

/** Like `send`, but for calls that must succeed. @throws also OperatorError with the server's message */
export async function ask<T>(api: OperatorApi, path: string, stop: AbortSignal): Promise<T> {
  const response = await send(api, "GET", path, undefined, stop);
  if (!response.ok) throw await refusal(response);
  return (await response.json()) as T;
}

/**
 * Why a document was refused; undefined if the refusal does not concern the document, and the next one would fail
 * too.
 */
export async function documentsFault(response: Response): Promise<string | undefined> {
  const answer = (await response
    .clone()
    .json()
    .catch(() => null)) as { detail?: unknown } | null;
  const detail = typeof answer?.detail === "string" ? answer.detail : `the answer was ${response.status}`;
  const { status } = response;
  if (status === 422)
    return /^\/(?:text|content_base64|content_type|title|source_uri): (.*)$/s.exec(detail)?.[1];
  return status === 400 || status === 413 || status === 429 || status >= 500 ? detail : undefined;
}

function secondsToWait({ status, headers }: Response): number | undefined {
  const seconds = Number(headers.get("retry-after") ?? Number.NaN);
  if ((status !== 429 && status !== 503) || !(seconds >= 0)) return undefined;
  return Math.min(Math.max(seconds, 0.1), LONGEST_WAIT_SECONDS);
}

function gone(error: unknown): never {
  const code = error instanceof Error && "code" in error ? ` (${String(error.code)})` : "";
  throw new OperatorError(
    `the gateway no longer answers${code}`,
    "run it again when it does: documents already added are left unchanged",
  );
}
