import { ScheduleRuns, type ScheduleRunsParts } from "./runs.ts";
import { Schedules, type SchedulesParts } from "./schedules.ts";

export interface OpenSchedulesParts extends ScheduleRunsParts, Omit<SchedulesParts, "changed"> {}

/** Schedules, and what runs them once it is started. */
export function openSchedules(parts: OpenSchedulesParts) {
  const runs = new ScheduleRuns(parts);
  return { schedules: new Schedules({ ...parts, changed: () => runs.wake() }), runs };
}
