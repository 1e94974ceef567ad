import { EventMeter } from "./event-stream.ts";
import { type JsonExcess, type JsonLimits, JsonMeter } from "./nesting.ts";

/** What one body takes of a room. */
export interface BodyShare {
  add(bytes: number): void;
  /** MUST be called when the body has ended, in whatever way. May be called again. */
  leave(): void;
}

/** A bound that several bodies share. */
export interface BodyRoom {
  /** @param fail ends the body with an error, at any time */
  enter(fail: (error: Error) => void): BodyShare;
}

/** The limits of a body, and the errors with which it fails beyond them. */
export interface BodyLimits {
  /** The most bytes of one event of a `text/event-stream`, or of any other body in total. */
  readonly bytes: number;
  /** The most bytes of all events of a `text/event-stream` together. Default: any number. */
  readonly streamBytes?: number | undefined;
  /** The room that event streams share. Default: each has its own limits only. */
  readonly room?: BodyRoom | undefined;
  readonly tooLarge: () => Error;
  /** Limits of the JSON in a body or in each event. Default: MAX_NESTING and MAX_MEMBERS. */
  readonly json?: JsonLimits | undefined;
  /** The error for a body or event whose JSON exceeds its limits. */
  readonly jsonTooLarge: (excess: JsonExcess) => Error;
}

/** Checks the next bytes. @returns the error with which the body fails, or null */
type Check = (part: Uint8Array) => Error | null;

/**
 * Returns the response with a body that fails beyond the limits. Nothing is read before the reader asks for it, and a
 * reader that cancels ends the request.
 */
export function capBody(response: Response, limits: BodyLimits): Response {
  const type = response.headers.get("content-type") ?? "";
  // The body of an error response is read as a whole, whatever its content type.
  const isStream = response.ok && /^\s*text\/event-stream\b/i.test(type);
  return isStream ? checked(response, checkEvents(limits), limits.room) : capWhole(response, limits);
}

/** `capBody` for a body that is never read as events: `bytes` limits the whole. */
export function capWhole(response: Response, limits: BodyLimits): Response {
  return checked(response, checkWhole(limits));
}

function checkEvents({ bytes, streamBytes, json, tooLarge, jsonTooLarge }: BodyLimits): Check {
  const mostBytes = streamBytes ?? Number.POSITIVE_INFINITY;
  const events = new EventMeter(json);
  let total = 0;
  return (part) => {
    total += part.length;
    if (total > mostBytes) return tooLarge();
    const { bytes: most, excess } = events.add(part);
    if (most > bytes) return tooLarge();
    return excess && jsonTooLarge(excess);
  };
}

/** Checks the JSON both as one text and as event data, since some readers look for events whatever the type is. */
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

function checked(response: Response, check: Check, room?: BodyRoom): Response {
  if (!response.body) return response;
  const reader = response.body.getReader();
  let share: BodyShare | undefined;
  let hasFailed = false;
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        share = room?.enter((error) => fail(controller, error));
      },
      async pull(controller) {
        const { done, value } = await reader.read().catch((error: unknown) => {
          share?.leave();
          throw error;
        });
        if (hasFailed) return;
        if (done) {
          share?.leave();
          controller.close();
          return;
        }
        const refusal = check(value);
        if (refusal) fail(controller, refusal);
        else share?.add(value.length);
        if (!hasFailed) controller.enqueue(value);
      },
      cancel(reason) {
        share?.leave();
        return reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
  function fail(controller: ReadableStreamDefaultController<Uint8Array>, error: Error): void {
    hasFailed = true;
    share?.leave();
    // The body is no longer needed, so an error of its connection does not matter.
    reader.cancel().catch(() => {});
    controller.error(error);
  }
  const headers = new Headers(response.headers);
  // These headers describe the bytes on the wire, but the body has been decompressed.
  headers.delete("content-encoding");
  headers.delete("content-length");
  return new Response(body, { status: response.status, statusText: response.statusText, headers });
}
