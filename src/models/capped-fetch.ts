import { AnswerTooLarge } from "../agents/index.ts";
import { type BodyLimits, capBody } from "../base/capped-body.ts";
import type { Clock } from "../base/clock.ts";
import { Inflow } from "../base/inflow.ts";
import { type JsonLimits, JsonTooLarge } from "../base/json-limits.ts";
import { openFilesReserve } from "../base/open-files/reserve.ts";
import { requireUncompressed, uncompressed } from "../base/uncompressed.ts";
import type { ProviderKind } from "../config/config.ts";
import { type AnswerMemory, SHARED_ANSWER_MEMORY } from "./answer-memory.ts";
import { callingWorkspace } from "./calling-workspace.ts";

/**
 * The maximum number of bytes in one event of a streamed answer, or in an unstreamed answer such as an error. The
 * longest legitimate event repeats a whole answer: 1,000,000 characters of six bytes each, together with the request.
 */
const MOST_BYTES = 16 * 1024 * 1024;

/**
 * The maximum number of bytes in a whole streamed answer. The SDK keeps parts of an answer that no output limit
 * counts, such as annotations, until the answer ends. Current models write at most 128,000 tokens, each in its own
 * event of less than 500 bytes.
 */
const MOST_STREAM_BYTES = 64 * 1024 * 1024;

/**
 * Limits for providers' responses. Exceeding `bytes` causes AnswerTooLarge; exceeding the limits for JSON causes
 * JsonTooLarge.
 */
export function answerLimits(bytes: number, inflow: Inflow, json?: JsonLimits): BodyLimits {
  return {
    bytes,
    json,
    inflow,
    tooLarge: () => new AnswerTooLarge("The model's answer is too large."),
    jsonTooLarge: (excess) => new JsonTooLarge(excess, json),
  };
}

/**
 * The maximum number of members in one event or one unstreamed answer, in dialects whose events each carry a part of
 * the answer. The longest legitimate event has all tool calls of an answer, with seven members each. For each part of
 * a call, the SDK searches all calls started so far, so its work grows with the square of this number: 64,000 calls
 * in one event blocked the process for 34 s. This maximum blocks it for about 20 ms.
 */
const STEP_MEMBERS = 4_096;

/**
 * Other dialects repeat the request, with the schemas of all tools, or contain arguments as JSON, so the default
 * applies.
 */
const LIMITS_BY_KIND: Readonly<Record<ProviderKind, JsonLimits>> = {
  "openai-compatible": { members: STEP_MEMBERS },
  anthropic: { members: STEP_MEMBERS },
  bedrock: { members: STEP_MEMBERS },
  openai: {},
  azure: {},
  google: {},
  vertex: {},
};

/**
 * A `fetch` for model providers. A response fails if it would exhaust memory or block the event loop. A response
 * that never ends is read more slowly. Without these limits, the SDK would buffer an endless event, or an error of 2
 * GB.
 */
export function cappedFetch(
  kind: ProviderKind,
  clock: Clock,
  memory: AnswerMemory = SHARED_ANSWER_MEMORY,
): typeof fetch {
  return fetchWith((response) =>
    capBody(response, {
      ...answerLimits(MOST_BYTES, new Inflow(clock, callingWorkspace()), LIMITS_BY_KIND[kind]),
      streamBytes: MOST_STREAM_BYTES,
      memory,
    }),
  );
}

/** A `fetch` that waits for a free descriptor, refuses compressed responses, and limits the others with `cap`. */
export function fetchWith(cap: (response: Response) => Response): typeof fetch {
  const limited = async (
    input: string | URL | Request,
    init?: RequestInit | BunFetchRequestInit,
  ): Promise<Response> => {
    await openFilesReserve.untilRoom(init?.signal);
    const response = await fetch(input, { ...init, ...uncompressed(init?.headers) });
    requireUncompressed(response);
    return cap(response);
  };
  return Object.assign(limited, { preconnect: fetch.preconnect });
}
