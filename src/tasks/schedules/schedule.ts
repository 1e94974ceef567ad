/** Whether it runs. One that cannot run any more (its token is revoked, its agent archived) is paused. */
export type ScheduleStatus = "active" | "paused";
/** What becomes of times that passed while nobody was there: none of them is made up for, or one. */
export type Missed = "skip" | "once";

/** What somebody asks for. */
export interface ScheduleFields {
  readonly name: string;
  readonly agent: string;
  readonly prompt: string;
  readonly cron: string;
  /** Of the IANA database. */
  readonly timezone: string;
  /** Null: the lowest that the agent's policy allows when it runs. */
  readonly tier: number | null;
  readonly tools: readonly string[];
  readonly metadata: Readonly<Record<string, string>>;
  readonly missed: Missed;
  readonly status: ScheduleStatus;
}

/**
 * Tasks that are dispatched at certain times. As with cron, each time has its task whatever became of the one before: a run
 * that lasts longer than its interval has others beside it, within the workspace's limits.
 */
export interface Schedule extends ScheduleFields {
  readonly workspaceId: number;
  readonly id: string;
  /** The agent that was meant: another one of its name is not. Null for one that was gone before this was kept. */
  readonly agentId: number | null;
  /** Grows by one with each change. */
  readonly version: number;
  readonly createdBy: string;
  /** The actor who made or changed it last: it runs with the rights that this one has then, and never with more. */
  readonly runsAs: string;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly nextAt: number | null;
  readonly last: LastRun | null;
}

/** What a time came to. */
export interface LastRun {
  /** The time that it was due at. */
  readonly at: number;
  /** Null where none was made. */
  readonly task: string | null;
  /** Why none was made: a problem's code, or `missed`. */
  readonly code: string | null;
}

/** Schedules of one workspace. With one a minute each, they fill a sixth of its usual request limit. */
export const SCHEDULE_LIMIT = 100;
