import type { Progress as Said } from "@modelcontextprotocol/sdk/types.js";
import type { ToolProgress } from "../source.ts";
import { Allowance } from "./allowance.ts";
import { shown } from "./faults.ts";
import type { UpstreamParts } from "./parts.ts";

/**
 * Maximum number of progress notifications of one call that are passed on per second. Each becomes an event for the
 * caller.
 */
const MOST_A_SECOND = 50;
const MESSAGE_LIMIT = 1_000;

/** Passes on an upstream's progress, masked and cut. Drops notifications above the limit. */
export function progressTo(
  told: (progress: ToolProgress) => void,
  parts: Pick<UpstreamParts, "clock" | "mask">,
): (said: Said) => void {
  const allowance = new Allowance(parts.clock, MOST_A_SECOND, 1_000);
  return ({ progress, total, message }) => {
    if (!allowance.take()) return;
    told({
      progress,
      ...(total === undefined ? {} : { total }),
      ...(message === undefined ? {} : { message: shown(message, parts, MESSAGE_LIMIT) }),
    });
  };
}
