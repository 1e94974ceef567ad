import type { Progress as Said } from "@modelcontextprotocol/sdk/types.js";
import type { Progress } from "../source.ts";
import { Allowance } from "./allowance.ts";
import { shown } from "./faults.ts";
import type { UpstreamParts } from "./parts.ts";

/** Signs of progress of one call that are passed on within a second; each is an event for whoever watches. */
const MOST_A_SECOND = 50;
const MESSAGE_LIMIT = 1_000;

/** Passes an upstream's progress on, masked and cut; what comes in a flood is left out. */
export function progressTo(
  told: (progress: Progress) => void,
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
