/** Whether it runs. A schedule that can no longer run (its token was revoked, or its agent archived) is paused. */
export type ScheduleStatus = "active" | "paused";
/** How to handle times missed while the process was not running: skip them all, or run once to make up for them. */
export type Missed = "skip" | "once";

/** The part of a schedule that callers choose. */
export interface ScheduleFields {
  readonly name: string;
  readonly agent: string;
  readonly prompt: string;
  readonly cron: string;
  /** A time zone of the IANA database. */
  readonly timezone: string;
  /** Null for the lowest tier that the agent's policy allows at the time of the run. */
  readonly tier: number | null;
  readonly tools: readonly string[];
  readonly metadata: Readonly<Record<string, string>>;
  readonly missed: Missed;
  readonly status: ScheduleStatus;
}

/**
 * Tasks that are dispatched at certain times. As with cron, each time has its own task, regardless of the previous
 * one. If a run takes longer than its interval, the next one starts in parallel, within the workspace's limits.
 */
export interface Schedule extends ScheduleFields {
  readonly workspaceId: number;
  readonly id: string;
  /** The intended agent, not another one with the same name. Null if it was gone before ids were recorded. */
  readonly agentId: number | null;
  /** Increases by one with each change. */
  readonly version: number;
  readonly createdBy: string;
  /** The actor that last created or changed it. The schedule runs with that actor's current rights. */
  readonly runsAs: string;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly nextAt: number | null;
  readonly last: ScheduleRunResult | null;
}

/** The result of a scheduled time. */
export interface ScheduleRunResult {
  /** The time at which it was due. */
  readonly at: number;
  /** Null if no task was made. */
  readonly task: string | null;
  /** Why no task was made: a problem's code, or `missed`. */
  readonly code: string | null;
}

/**
 * The maximum number of schedules in one workspace. If all run every minute, they use a sixth of its usual request
 * limit.
 */
export const SCHEDULE_LIMIT = 100;
