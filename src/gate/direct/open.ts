import type { Nodes } from "../../nodes/nodes.ts";
import type { LedgerHistories } from "../ledger-histories.ts";
import { UsageTally } from "../usage/tally.ts";
import { localCallOwners } from "./call-owners.ts";
import { LateOutcomes } from "./late-outcomes.ts";
import { type LostCallsParts, reportLost } from "./open-calls.ts";
import { RunningCalls } from "./running-calls.ts";
import { SharedCallOwners } from "./shared-call-owners.ts";

/** The shared records of tool and model calls that a caller makes itself, outside of tasks. */
export interface DirectCallRecords {
  readonly running: RunningCalls;
  readonly usage: UsageTally;
  readonly late: LateOutcomes;
  /** Stores the statistics of calls that have ended. Called every few seconds. */
  keepHouse(): Promise<void>;
  /**
   * Reports the calls of processes that have died, and of nodes that were given up.
   * @throws StoreUnavailable
   */
  reportLost(): Promise<void>;
  /** Like `reportLost`, unless no call of a node that is gone is known. */
  reportLeft(): Promise<void>;
  /** Ends every call. Resolves when their outcomes are written, or left to the next start. */
  stop(): Promise<void>;
}

export interface DirectCallsParts extends Omit<LostCallsParts, "owners"> {
  readonly nodes: Pick<Nodes, "isShared" | "id" | "lost">;
  readonly histories: LedgerHistories;
  readonly workspaces: { list(): readonly { readonly id: number }[] };
}

export function openDirectCalls(parts: DirectCallsParts): DirectCallRecords {
  const { db, nodes, histories, workspaces, clock, log } = parts;
  const running = new RunningCalls();
  const usage = new UsageTally(db, log);
  const late = new LateOutcomes(clock, log);
  const owners = nodes.isShared ? new SharedCallOwners(parts) : localCallOwners(histories);
  // Others report them as lost.
  nodes.lost.listen(() => running.cutOff());
  const reportAll = async () => {
    for (const { id } of workspaces.list()) await reportLost({ ...parts, owners }, id);
  };
  return {
    ...{ running, usage, late },
    keepHouse: () => usage.flush(),
    reportLost: reportAll,
    async reportLeft() {
      if (await owners.mayHaveLost()) await reportAll();
    },
    async stop() {
      await running.stop();
      await late.stop();
    },
  };
}
