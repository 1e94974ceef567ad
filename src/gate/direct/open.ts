import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Db } from "../../store/db.ts";
import { UsageTally } from "../usage/tally.ts";
import { LateOutcomes } from "./late-outcomes.ts";
import { RunningCalls } from "./running-calls.ts";

/** The shared records of tool and model calls that a caller makes itself, outside of tasks. */
export interface DirectCallRecords {
  readonly running: RunningCalls;
  readonly usage: UsageTally;
  readonly late: LateOutcomes;
  /** Stores the statistics of calls that have ended. Called every few seconds. */
  keepHouse(): Promise<void>;
  /** Ends every call. Resolves when their outcomes are written, or left to the next start. */
  stop(): Promise<void>;
}

export function openDirectCalls(db: Db, clock: Clock, log: Log): DirectCallRecords {
  const running = new RunningCalls();
  const usage = new UsageTally(db, log);
  const late = new LateOutcomes(clock, log);
  return {
    ...{ running, usage, late },
    keepHouse: () => usage.flush(),
    async stop() {
      await running.stop();
      await late.stop();
    },
  };
}
