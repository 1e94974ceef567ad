import type { Evidence } from "../soak.ts";
import { budgetFaults, exhaustedFaults } from "./budgets.ts";
import { callFaults } from "./calls.ts";
import { creditFaults } from "./credits.ts";
import { documentFaults, fileFaults, growthFaults, intentFaults } from "./files.ts";
import { givenUpFaults } from "./given-up.ts";
import { meetingFaults } from "./meant.ts";
import { endedByStopFaults, stopFaults } from "./stops.ts";
import { endFaults, eventFaults, scheduleFaults, taskFaults } from "./tasks.ts";

/** The checks made at the end, by the promise that must hold. */
export const CHECKS = {
  "no task is lost, and each ended in an allowed way": taskFaults,
  "a task is abandoned after three crashes in the same step": givenUpFaults,
  "each task has ended once": endFaults,
  "events add up": eventFaults,
  "each scheduled time leads to one task": scheduleFaults,
  "no tool is called twice": callFaults,
  "a stopped agent calls nothing": stopFaults,
  "a task that a stop has ended was stopped": endedByStopFaults,
  "each intent has one outcome": intentFaults,
  "credits add up": creditFaults,
  "no call begins when its budget is spent or reserved": budgetFaults,
  "a task that ended for lack of credits was refused a call": exhaustedFaults,
  "documents are as acknowledged": documentFaults,
  "the file is whole": fileFaults,
  "nothing is left behind": growthFaults,
  "the kills hit the situations that they are meant for": meetingFaults,
} satisfies Readonly<Record<string, (evidence: Evidence) => Iterable<string>>>;

/** Adds every fault found at the end to those found on the way. */
export function checkAll(evidence: Evidence): void {
  for (const [check, find] of Object.entries(CHECKS)) {
    for (const text of find(evidence)) evidence.world.faults.add(check, text);
  }
}
