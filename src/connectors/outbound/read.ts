import { ConnectorError } from "../source.ts";
import { asConnectorError } from "./errors.ts";

/**
 * Reads the whole body. It is dropped if it exceeds `bytes` or the signal aborts.
 *
 * @param came called with the length so far; if it throws, the reading ends
 * @throws ConnectorError `too_large`; `timeout` or `cancelled` by the signal; or the error of a broken connection
 */
export async function readCapped(
  response: Response,
  bytes: number,
  signal?: AbortSignal,
  came: (length: number) => void = () => {},
): Promise<Uint8Array<ArrayBuffer>> {
  const body = response.body;
  if (!body) return new Uint8Array();
  const declared = Number(response.headers.get("content-length") ?? 0);
  const reader = body.getReader();
  const letGo = () => drop(reader);
  signal?.addEventListener("abort", letGo, { once: true });
  const parts: Uint8Array[] = [];
  let length = 0;
  try {
    if (declared > bytes) throw tooLarge(bytes);
    signal?.throwIfAborted();
    for (;;) {
      const { done, value } = await reader.read();
      // A cancelled reader reports the end of the body.
      signal?.throwIfAborted();
      if (done) break;
      length += value.length;
      if (length > bytes) throw tooLarge(bytes);
      came(length);
      parts.push(value);
    }
  } catch (error) {
    letGo();
    throw asConnectorError(signal?.aborted ? signal.reason : error, "The server");
  } finally {
    signal?.removeEventListener("abort", letGo);
  }
  return joined(parts, length);
}

function tooLarge(bytes: number): ConnectorError {
  return new ConnectorError("too_large", `The answer is larger than ${bytes} bytes.`);
}

function drop(reader: Pick<ReadableStreamDefaultReader, "cancel">): void {
  // The body is no longer needed, so it does not matter if its connection breaks too.
  reader.cancel().catch(() => {});
}

function joined(parts: readonly Uint8Array[], length: number): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
