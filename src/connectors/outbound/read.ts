import { ConnectorError } from "../source.ts";
import { asConnectorError } from "./errors.ts";

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;

/**
 * The whole body. Past `bytes` it is let go, and so it is when the signal aborts.
 *
 * @throws ConnectorError `too_large`; `timeout` or `cancelled` by the signal; what a broken connection is
 */
export async function readCapped(
  response: Response,
  bytes: number,
  signal?: AbortSignal,
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
      // A reader that was let go says that the body has ended.
      signal?.throwIfAborted();
      if (done) break;
      length += value.length;
      if (length > bytes) throw tooLarge(bytes);
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

/**
 * The same response with a body that fails with ConnectorError `too_large` where an event of a `text/event-stream` has more
 * than `bytes` bytes, or any other body has more in all. Nothing is read before it is asked for, and a reader that leaves
 * ends the request.
 */
export function capStream(response: Response, bytes: number): Response {
  if (!response.body) return response;
  const reader = response.body.getReader();
  const type = response.headers.get("content-type") ?? "";
  const count = /^\s*text\/event-stream\b/i.test(type) ? countEvents() : countAll();
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await reader.read();
        if (done) {
          controller.close();
        } else if (count(value) > bytes) {
          drop(reader);
          controller.error(tooLarge(bytes));
        } else controller.enqueue(value);
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
  const headers = new Headers(response.headers);
  // They tell of the bytes on the wire; these are decompressed.
  headers.delete("content-encoding");
  headers.delete("content-length");
  return new Response(body, { status: response.status, statusText: response.statusText, headers });
}

type Count = (part: Uint8Array) => number;

function countAll(): Count {
  let total = 0;
  return (part) => {
    total += part.length;
    return total;
  };
}

/**
 * The most bytes that an event has that is open or ends in this part. Lines end in LF, CR or CRLF, and a blank one ends an
 * event (HTML standard, 9.2.5).
 */
function countEvents(): Count {
  let length = 0;
  let lineIsBlank = true;
  let afterReturn = false;
  return (part) => {
    let most = length;
    for (const byte of part) {
      length++;
      if (byte === LINE_FEED && afterReturn) {
        afterReturn = false;
        continue;
      }
      afterReturn = byte === CARRIAGE_RETURN;
      if (byte !== LINE_FEED && !afterReturn) {
        lineIsBlank = false;
        continue;
      }
      if (lineIsBlank) {
        most = Math.max(most, length);
        length = 0;
      }
      lineIsBlank = true;
    }
    return Math.max(most, length);
  };
}

function tooLarge(bytes: number): ConnectorError {
  return new ConnectorError("too_large", `The answer is larger than ${bytes} bytes.`);
}

function drop(reader: Pick<ReadableStreamDefaultReader, "cancel">): void {
  // It is not wanted any more: that its connection broke as well changes nothing.
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
