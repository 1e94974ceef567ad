import { toCredits } from "../base/credits.ts";
import type { Log } from "../base/log.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { LocalReservations } from "../limits/local-reservations.ts";
import { SharedReservations } from "../limits/shared-reservations.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { Announcements } from "../notify/announce.ts";
import type { Db } from "../store/db.ts";
import { type BudgetParts, Budgets } from "./budget.ts";
import { LocalMonthTotals } from "./month-totals.ts";
import { SharedMonthTotals } from "./shared-month-totals.ts";

export interface OpenBudgetsParts extends Pick<BudgetParts, "workspaces" | "clock" | "toolPrices"> {
  readonly db: Db;
  readonly nodes: Nodes;
  readonly ledger: Ledger;
  readonly log: Log;
  readonly announcements: Pick<Announcements, "budgetWarning" | "budgetSpent">;
}

/** Creates the budgets and their notices. */
export function openBudgets(parts: OpenBudgetsParts): Budgets {
  const { workspaces, clock, toolPrices, nodes } = parts;
  const counted = nodes.isShared
    ? { reservations: new SharedReservations(parts), months: new SharedMonthTotals() }
    : { reservations: new LocalReservations(), months: new LocalMonthTotals() };
  return new Budgets({ workspaces, clock, toolPrices, ...counted, recordCrossing: createNotices(parts) });
}

/**
 * Reports a budget that is nearly or completely spent: an entry and a webhook event in the transaction of the charge
 * or of the budget's change, so each crossing is reported exactly once, and a log line.
 */
function createNotices(parts: OpenBudgetsParts): BudgetParts["recordCrossing"] {
  const { ledger, workspaces, log, announcements } = parts;
  return async (tx, crossing) => {
    const { workspaceId, budget, agent, percent, spent, limit } = crossing;
    const isSpent = percent === 100;
    await ledger.append(tx, workspaceId, {
      phase: "single",
      action: isSpent ? "limit.exceeded" : "budget.warn",
      // The spending so far was allowed. Each call refused from now on has its own entry.
      outcome: "allowed",
      channel: "system",
      actor: "system",
      agent: agent ?? undefined,
      detail: isSpent
        ? { limit: "credits", budget, percent, spent, budget_limit: limit }
        : { budget, percent, spent, budget_limit: limit },
    });
    const told = { workspaceId, budget, agent, spent: toCredits(spent), credits: toCredits(limit) };
    if (isSpent) await announcements.budgetSpent(tx, told);
    else await announcements.budgetWarning(tx, { ...told, percent });
    tx.onCommit(() => {
      const { name: workspace } = workspaces.get(workspaceId);
      const words = isSpent ? "a budget is spent" : "a budget is nearly spent";
      const { spent: credits, credits: of } = told;
      log.warn(words, { workspace, budget, agent, percent, spent: credits, limit: of });
    });
  };
}
