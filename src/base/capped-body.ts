const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;

/**
 * The same response with a body that fails with what `tooLarge` makes where an event of a `text/event-stream` has more than
 * `bytes` bytes, or any other body has more in all. Nothing is read before it is asked for, and a reader that leaves ends
 * the request.
 */
export function capBody(response: Response, bytes: number, tooLarge: () => Error): Response {
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
          // It is not wanted any more: that its connection broke as well changes nothing.
          reader.cancel().catch(() => {});
          controller.error(tooLarge());
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
