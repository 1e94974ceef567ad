import { type BodyLimits, capBody } from "../base/capped-body.ts";
import { type JsonLimits, JsonTooLarge } from "../base/nesting.ts";
import { openFilesReserve } from "../base/open-files/reserve.ts";

/**
 * Bytes of one event of a streamed answer, and of an answer that is no stream, such as an error. The longest honest event
 * repeats a whole answer: 1,000,000 characters of six bytes each, with what was asked.
 */
const MOST_BYTES = 16 * 1024 * 1024;

/** What providers' answers may hold: up to `bytes`, then a RangeError; past the limits of JSON, JsonTooLarge. */
export function answerLimits(bytes: number, json?: JsonLimits): BodyLimits {
  return {
    bytes,
    json,
    tooLarge: () => new RangeError("The answer is too large."),
    jsonTooLarge: (excess) => new JsonTooLarge(excess, json),
  };
}

/**
 * The `fetch` of the models' providers: an answer ends in an error if it would fill the memory or hold up the loop. On its
 * own, the SDK keeps an event without an end for ever, and 2 GB of an error.
 */
export const cappedFetch: typeof fetch = Object.assign(
  async (input: string | URL | Request, init?: RequestInit | BunFetchRequestInit): Promise<Response> => {
    await openFilesReserve.untilRoom(init?.signal);
    return capBody(await fetch(input, init), answerLimits(MOST_BYTES));
  },
  { preconnect: fetch.preconnect },
);
