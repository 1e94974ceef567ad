import type { Evidence } from "../soak.ts";
import { callFaults, stopFaults } from "./calls.ts";
import { creditFaults } from "./credits.ts";
import { documentFaults, fileFaults, growthFaults, intentFaults } from "./files.ts";
import { endFaults, eventFaults, scheduleFaults, taskFaults } from "./tasks.ts";

/** What is checked at the end, by the name of what must hold. */
export const CHECKS = {
  "no task is lost, and each ended as it may": taskFaults,
  "each task has ended once": endFaults,
  "events add up": eventFaults,
  "a schedule's time comes to one task": scheduleFaults,
  "no tool is called twice": callFaults,
  "a stopped agent calls nothing": stopFaults,
  "each intent has one outcome": intentFaults,
  "credits add up": creditFaults,
  "documents are as acknowledged": documentFaults,
  "the file is whole": fileFaults,
  "nothing is left behind": growthFaults,
} satisfies Readonly<Record<string, (evidence: Evidence) => Iterable<string>>>;

/** Every fault of the end joins those that were found on the way. */
export function checkAll(evidence: Evidence): void {
  for (const [check, find] of Object.entries(CHECKS)) {
    for (const text of find(evidence)) evidence.world.faults.add(check, text);
  }
}
