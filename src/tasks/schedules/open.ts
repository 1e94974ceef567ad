import { ScheduleEvidence, type ScheduleEvidenceParts } from "./evidence.ts";
import { ScheduleRuns, type ScheduleRunsParts } from "./runs.ts";
import { Schedules, type SchedulesParts } from "./schedules.ts";

export interface OpenSchedulesParts
  extends Omit<ScheduleRunsParts, "evidence">,
    Omit<SchedulesParts, "changed">,
    Omit<ScheduleEvidenceParts, "db"> {}

/** Schedules, and the component that runs them once started. */
export function openSchedules(parts: OpenSchedulesParts) {
  const runs = new ScheduleRuns({ ...parts, evidence: new ScheduleEvidence(parts) });
  return { schedules: new Schedules({ ...parts, changed: () => runs.wake() }), runs };
}
