import { toCredits } from "../base/credits.ts";
import type { Log } from "../base/log.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Announcements } from "../notify/announce.ts";
import { type BudgetParts, Budgets, type Crossing } from "./budget.ts";

export interface OpenBudgetsParts extends Omit<BudgetParts, "crossed"> {
  readonly ledger: Ledger;
  readonly log: Log;
  readonly announcements: Pick<Announcements, "budgetWarning" | "budgetSpent">;
  /** Told of each crossing once it is on disk, for the metrics and who looks on. */
  crossed(crossing: Crossing): void;
}

/** Budgets, with what is said of them. */
export function openBudgets(parts: OpenBudgetsParts): Budgets {
  const { workspaces, clock, toolPrices } = parts;
  return new Budgets({ workspaces, clock, toolPrices, crossed: createNotices(parts) });
}

/**
 * What is said of a budget that is nearly spent, or spent: an entry and a word to the webhook in the transaction of the
 * charge, or of the change of the budget, so that each crossing is told once whatever happens, and a line in the log.
 */
function createNotices(parts: OpenBudgetsParts): BudgetParts["crossed"] {
  const { ledger, workspaces, log, announcements, crossed } = parts;
  return async (tx, crossing) => {
    const { workspaceId, budget, agent, percent, spent, limit } = crossing;
    const isSpent = percent === 100;
    await ledger.append(tx, workspaceId, {
      phase: "single",
      action: isSpent ? "limit.exceeded" : "budget.warn",
      // What is spent was allowed; each call that is refused from now on has an entry of its own.
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
      crossed(crossing);
    });
  };
}
