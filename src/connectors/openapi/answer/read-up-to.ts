import { asConnectorError } from "../../outbound/errors.ts";

/** The beginning of a body, and whether there was more of it. */
export interface CappedBody {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly isCut: boolean;
}

/**
 * Reads a body up to `limit` bytes and drops the rest. If the signal aborts, all of it is dropped.
 * @throws ConnectorError if the connection breaks; the signal's reason if it aborts
 */
export async function readUpTo(response: Response, limit: number, signal: AbortSignal): Promise<CappedBody> {
  if (!response.body) return { bytes: new Uint8Array(), isCut: false };
  const reader = response.body.getReader();
  // Nothing more will be read, so it does not matter if the connection breaks now.
  const letGo = () => void reader.cancel().catch(() => {});
  signal.addEventListener("abort", letGo, { once: true });
  const parts: Uint8Array[] = [];
  let length = 0;
  try {
    while (length <= limit) {
      signal.throwIfAborted();
      const { done, value } = await reader.read();
      // A cancelled reader reports the end of the body.
      signal.throwIfAborted();
      if (done) return { bytes: joined(parts, length), isCut: false };
      parts.push(value);
      length += value.length;
    }
  } catch (error) {
    throw signal.aborted ? signal.reason : asConnectorError(error, "The answer");
  } finally {
    signal.removeEventListener("abort", letGo);
    letGo();
  }
  return { bytes: joined(parts, limit), isCut: true };
}

function joined(parts: readonly Uint8Array[], length: number): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    whole.set(part.subarray(0, length - at), at);
    at += part.length;
    if (at >= length) break;
  }
  return whole;
}
