import { FrameMeter } from "./event-frames.ts";
import { EventMeter } from "./event-stream.ts";
import type { Arrival, Inflow } from "./inflow.ts";
import { type JsonExcess, type JsonLimits, JsonMeter } from "./json-limits.ts";

/** One body's share of a common limit. */
export interface BodyShare {
  add(bytes: number): void;
  /** MUST be called when the body ends, however it ends. Safe to call more than once. */
  leave(): void;
}

/** A limit that several bodies share. */
export interface BodyMemory {
  /** @param fail ends the body with an error, at any time */
  enter(fail: (error: Error) => void): BodyShare;
}

/** The limits of a body, and the errors with which it fails if it exceeds them. */
export interface BodyLimits {
  /** Maximum size in bytes of one event of an event stream, or of any other body in total. */
  readonly bytes: number;
  /** Maximum total size in bytes of the events of an event stream. Default: unlimited. */
  readonly streamBytes?: number | undefined;
  /** The limit that bodies share. By default, each has only its own limits. */
  readonly memory?: BodyMemory | undefined;
  readonly tooLarge: () => Error;
  /** Limits of the JSON in a body or in each event. Default: MAX_NESTING and MAX_MEMBERS. */
  readonly json?: JsonLimits | undefined;
  /** The error for a body or event whose JSON exceeds its limits. */
  readonly jsonTooLarge: (excess: JsonExcess) => Error;
  /** Paces the source of the body. */
  readonly inflow: Inflow;
}

/** Measures the next bytes, and finds the error with which the body fails, if any. */
type Check = (part: Uint8Array) => { readonly refusal: Error | null; readonly arrival: Arrival };

/**
 * Maximum number of bytes of events that are passed on at once. Their reader processes all events in them without a
 * pause.
 */
const EVENTS_SLICE = 2 * 1024;
const WHOLE_SLICE = 64 * 1024;

/**
 * Returns the response with a body that fails beyond the limits, and that shares the event loop with others. Nothing is
 * read before the reader asks for it, and a reader that cancels ends the request.
 */
export function capBody(response: Response, limits: BodyLimits): Response {
  const type = response.headers.get("content-type") ?? "";
  // The body of an error response is read as a whole, whatever its content type.
  const check = response.ok ? eventsCheckOf(type) : undefined;
  if (!check) return capWhole(response, limits);
  const { inflow, memory } = limits;
  return checked(response, { check: check(limits), slice: EVENTS_SLICE, inflow, memory });
}

/** The check of an event stream, as text or in Amazon's frames; undefined for any other type. */
function eventsCheckOf(type: string): ((limits: BodyLimits) => Check) | undefined {
  if (/^\s*text\/event-stream\b/i.test(type)) return checkEvents;
  return /^\s*application\/vnd\.amazon\.eventstream\b/i.test(type) ? checkFrames : undefined;
}

/** `capBody` for a body that is never read as events: `bytes` limits the whole. */
export function capWhole(response: Response, limits: BodyLimits): Response {
  const { inflow, memory } = limits;
  return checked(response, { check: checkWhole(limits), slice: WHOLE_SLICE, inflow, memory });
}

function checkEvents({ bytes, streamBytes, json, tooLarge, jsonTooLarge }: BodyLimits): Check {
  const mostBytes = streamBytes ?? Number.POSITIVE_INFINITY;
  const events = new EventMeter(json);
  let total = 0;
  return (part) => {
    total += part.length;
    const { bytes: most, excess, lines, events: messages } = events.add(part);
    return {
      refusal: most > bytes || total > mostBytes ? tooLarge() : excess && jsonTooLarge(excess),
      arrival: { bytes: part.length, lines, messages },
    };
  };
}

/**
 * Maximum size in bytes of a frame. For each part that arrives, the AI SDK copies everything that it has received
 * of the frame, so its work grows with the square of this number. Frames carry parts of an answer; the largest, an
 * encrypted thought, have some 100 KB.
 */
const MOST_FRAME_BYTES = 1024 * 1024;

function checkFrames({ bytes, streamBytes, json, tooLarge, jsonTooLarge }: BodyLimits): Check {
  const mostBytes = streamBytes ?? Number.POSITIVE_INFINITY;
  const mostFrame = Math.min(bytes, MOST_FRAME_BYTES);
  const meter = new FrameMeter(json);
  let total = 0;
  return (part) => {
    total += part.length;
    const { bytes: most, excess, frames: messages } = meter.add(part);
    return {
      refusal: most > mostFrame || total > mostBytes ? tooLarge() : excess && jsonTooLarge(excess),
      arrival: { bytes: part.length, messages },
    };
  };
}

/** Checks the JSON both as a whole and as event data, since some readers look for events regardless of the type. */
function checkWhole({ bytes, json, tooLarge, jsonTooLarge }: BodyLimits): Check {
  const whole = new JsonMeter(json);
  const events = new EventMeter(json);
  let total = 0;
  return (part) => {
    total += part.length;
    const { excess: inEvents, events: messages } = events.add(part);
    const excess = whole.add(part) ?? inEvents;
    return {
      refusal: total > bytes ? tooLarge() : excess && jsonTooLarge(excess),
      arrival: { bytes: part.length, messages },
    };
  };
}

interface Checks {
  readonly check: Check;
  /** Maximum number of bytes handed on at once. */
  readonly slice: number;
  readonly inflow: Inflow;
  readonly memory?: BodyMemory | undefined;
}

function checked(response: Response, { check, slice, inflow, memory }: Checks): Response {
  if (!response.body) return response;
  const reader = response.body.getReader();
  let rest = new Uint8Array();
  let share: BodyShare | undefined;
  let hasEnded = false;
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        share = memory?.enter((error) => fail(controller, error));
      },
      async pull(controller) {
        while (rest.length === 0) {
          const { done, value } = await reader.read().catch((error: unknown) => {
            share?.leave();
            throw error;
          });
          if (hasEnded) return;
          if (done) {
            share?.leave();
            controller.close();
            return;
          }
          rest = value;
        }
        const part = rest.subarray(0, slice);
        rest = rest.subarray(slice);
        const { refusal, arrival } = check(part);
        if (refusal) return fail(controller, refusal);
        share?.add(part.length);
        const wait = inflow.take(arrival);
        if (wait) await wait;
        if (!hasEnded) controller.enqueue(part);
      },
      cancel(reason) {
        hasEnded = true;
        share?.leave();
        return reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
  function fail(controller: ReadableStreamDefaultController<Uint8Array>, error: Error): void {
    hasEnded = true;
    share?.leave();
    // The body is no longer needed, so an error of its connection does not matter.
    reader.cancel().catch(() => {});
    controller.error(error);
  }
  const { status, statusText, headers } = response;
  return new Response(body, { status, statusText, headers });
}
