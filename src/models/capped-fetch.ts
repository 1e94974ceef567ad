import { type BodyLimits, capBody } from "../base/capped-body.ts";
import { type JsonLimits, JsonTooLarge } from "../base/nesting.ts";
import { openFilesReserve } from "../base/open-files/reserve.ts";
import type { ProviderKind } from "../config/config.ts";

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
 * Members of one event, and of an answer that is no stream, of dialects whose events carry a step of the answer each. The
 * longest honest one has all tool calls of an answer at once: seven members each. The SDK looks through all calls that have
 * begun for each part of a call, so the square of this counts: 64,000 calls in one event held up the process for 34 s, as
 * many as there can be now for some 20 ms.
 */
const STEP_MEMBERS = 4_096;

/** Other dialects repeat what was asked, with the schemas of all tools, or have arguments as JSON: the default counts. */
const LIMITS_BY_KIND: Readonly<Record<ProviderKind, JsonLimits>> = {
  "openai-compatible": { members: STEP_MEMBERS },
  anthropic: { members: STEP_MEMBERS },
  openai: {},
  google: {},
};

/**
 * The `fetch` of the models' providers: an answer ends in an error if it would fill the memory or hold up the loop. On its
 * own, the SDK keeps an event without an end for ever, and 2 GB of an error.
 */
export function cappedFetch(kind: ProviderKind): typeof fetch {
  const limits = answerLimits(MOST_BYTES, LIMITS_BY_KIND[kind]);
  const capped = async (
    input: string | URL | Request,
    init?: RequestInit | BunFetchRequestInit,
  ): Promise<Response> => {
    await openFilesReserve.untilRoom(init?.signal);
    return capBody(await fetch(input, init), limits);
  };
  return Object.assign(capped, { preconnect: fetch.preconnect });
}
