import type { Tx } from "../store/db.ts";
import type { Webhook } from "./webhook.ts";

/** A task that ends. */
export interface FinishedTask {
  readonly workspaceId: number;
  readonly id: string;
  readonly agent: string;
  readonly status: string;
  readonly error: { readonly code: string } | null;
}

/** A call that waits for approval. */
export interface WaitingCall {
  readonly workspaceId: number;
  readonly task: string;
  readonly callId: string;
  readonly agent: string;
  readonly tool: string;
}

/** A partly spent budget. Credits as the API shows them. */
export interface SpentBudget {
  readonly workspaceId: number;
  readonly budget: "agent_day" | "workspace_month";
  /** Name of the agent whose daily budget it is. */
  readonly agent: string | null;
  readonly spent: number;
  /** The whole budget. */
  readonly credits: number;
}

/** Writes notices for the webhook, if there is one: ids, names and numbers, never text from users. */
export class Announcements {
  readonly #webhook: Webhook | null;
  readonly #nameOf: (workspaceId: number) => string;

  constructor(webhook: Webhook | null, nameOf: (workspaceId: number) => string) {
    this.#webhook = webhook;
    this.#nameOf = nameOf;
  }

  /** MUST be called in the transaction of the task's end, so a crash cannot lose the notice. */
  async taskFinished(tx: Tx, { workspaceId, id, agent, status, error }: FinishedTask): Promise<void> {
    const code = error === null ? {} : { code: error.code };
    const data = { workspace: this.#nameOf(workspaceId), task: id, agent, status, ...code };
    await this.#webhook?.write(tx, { workspaceId, type: "task.finished", data });
  }

  /** MUST be called in the transaction that makes the call wait, so a crash cannot lose the notice. */
  async approvalRequired(tx: Tx, { workspaceId, task, callId, agent, tool }: WaitingCall): Promise<void> {
    const data = { workspace: this.#nameOf(workspaceId), task, call_id: callId, agent, tool };
    await this.#webhook?.write(tx, { workspaceId, type: "approval.required", data });
  }

  limitExceeded(workspaceId: number, limit: string, enforcement: string): void {
    const data = { workspace: this.#nameOf(workspaceId), limit, enforcement };
    this.#webhook?.post({ workspaceId, type: "limit.exceeded", data });
  }

  /** MUST be called in the transaction of the charge or budget change that crosses the percentage. */
  async budgetWarning(tx: Tx, spent: SpentBudget & { readonly percent: number }): Promise<void> {
    const data = { ...this.#budget(spent), percent: spent.percent };
    await this.#webhook?.write(tx, { workspaceId: spent.workspaceId, type: "budget.warning", data });
  }

  /** MUST be called in the transaction of the charge or budget change that exhausts the budget. */
  async budgetSpent(tx: Tx, spent: SpentBudget): Promise<void> {
    const data = { ...this.#budget(spent), limit: "credits", enforcement: "enforced" };
    await this.#webhook?.write(tx, { workspaceId: spent.workspaceId, type: "limit.exceeded", data });
  }

  #budget({ workspaceId, budget, agent, spent, credits }: SpentBudget): object {
    const whose = agent === null ? {} : { agent };
    return { workspace: this.#nameOf(workspaceId), budget, ...whose, spent, budget_limit: credits };
  }

  /** A newer checkpoint covers all earlier ones. */
  checkpoint(workspaceId: number, origin: string, size: number, note: string): void {
    const data = { workspace: this.#nameOf(workspaceId), origin, size, checkpoint: note };
    this.#webhook?.post({ workspaceId, type: "ledger.checkpoint", data, replaces: true });
  }
}
