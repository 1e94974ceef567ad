import { capWhole } from "../../base/capped-body.ts";
import type { Clock } from "../../base/clock.ts";
import { Inflow } from "../../base/inflow.ts";
import { MAX_MEMBERS } from "../../base/json-limits.ts";
import { SHARED_ANSWER_MEMORY } from "../answer-memory.ts";
import { callingWorkspace } from "../calling-workspace.ts";
import { answerLimits, fetchWith } from "../capped-fetch.ts";

/**
 * The maximum number of bytes in a response: 256 vectors of 8,192 numbers of 22 characters are 46 MB. Without this
 * limit, the SDK would read 2 GB.
 */
const MOST_BYTES = 64 * 1024 * 1024;
/**
 * 256 vectors of 8,192 numbers, plus metadata. Parsing a number takes less than 0.1 µs, so only strings, arrays and
 * objects are limited strictly.
 */
const JSON_LIMITS = {
  members: 256 * 8_192 + MAX_MEMBERS,
  strings: MAX_MEMBERS,
  containers: MAX_MEMBERS,
};

/**
 * A `fetch` whose responses fail instead of exhausting memory if they are too large, have too many members or are
 * nested too deeply, or if all answers in progress take too much memory.
 */
export function boundedFetch(clock: Clock, mostBytes: number = MOST_BYTES): typeof fetch {
  return fetchWith((response) => {
    const limits = answerLimits(mostBytes, new Inflow(clock, callingWorkspace()), JSON_LIMITS);
    return capWhole(response, { ...limits, memory: SHARED_ANSWER_MEMORY });
  });
}
