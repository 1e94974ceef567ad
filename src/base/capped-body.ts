import { EventMeter } from "./event-stream.ts";
import { type JsonExcess, type JsonLimits, JsonMeter } from "./nesting.ts";

/** What a body may hold, and the errors in which it ends past that. */
export interface BodyLimits {
  /** Of one event of a `text/event-stream`, or of any other body in all. */
  readonly bytes: number;
  readonly tooLarge: () => Error;
  /** Of a body, and of each event. Default: MAX_NESTING and MAX_MEMBERS. */
  readonly json?: JsonLimits | undefined;
  /** For a body, or an event, whose JSON exceeds its limits. */
  readonly jsonTooLarge: (excess: JsonExcess) => Error;
}

/** Takes in the next bytes. @returns the error in which the body ends, if it does */
type Check = (part: Uint8Array) => Error | null;

/**
 * The same response with a body that fails past the limits. Nothing is read before it is asked for, and a reader that
 * leaves ends the request.
 */
export function capBody(response: Response, limits: BodyLimits): Response {
  const type = response.headers.get("content-type") ?? "";
  // The body of an error is read as a whole, whatever it calls itself.
  const isStream = response.ok && /^\s*text\/event-stream\b/i.test(type);
  return isStream ? checked(response, checkEvents(limits)) : capWhole(response, limits);
}

/** `capBody` for a body that is never read as events: `bytes` is for all of it. */
export function capWhole(response: Response, limits: BodyLimits): Response {
  return checked(response, checkWhole(limits));
}

function checkEvents({ bytes, json, tooLarge, jsonTooLarge }: BodyLimits): Check {
  const events = new EventMeter(json);
  return (part) => {
    const { bytes: most, excess } = events.add(part);
    if (most > bytes) return tooLarge();
    return excess && jsonTooLarge(excess);
  };
}

/** JSON is measured as one text, and as that of events: some readers look for events whatever the type is. */
function checkWhole({ bytes, json, tooLarge, jsonTooLarge }: BodyLimits): Check {
  const whole = new JsonMeter(json);
  const events = new EventMeter(json);
  let total = 0;
  return (part) => {
    total += part.length;
    if (total > bytes) return tooLarge();
    const excess = whole.add(part) ?? events.add(part).excess;
    return excess && jsonTooLarge(excess);
  };
}

function checked(response: Response, check: Check): Response {
  if (!response.body) return response;
  const reader = response.body.getReader();
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await reader.read();
        const refusal = done ? null : check(value);
        if (done) {
          controller.close();
        } else if (refusal) {
          // It is not wanted any more: that its connection broke as well changes nothing.
          reader.cancel().catch(() => {});
          controller.error(refusal);
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
