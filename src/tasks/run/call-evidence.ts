import { AgentDenied } from "../../agents/index.ts";
import { Problem } from "../../base/errors.ts";
import type { ReserveCredits } from "../../gate/budget.ts";
import type { EntryDraft } from "../../ledger/entry.ts";
import type { Tx } from "../../store/db.ts";
import { TOKEN_ENDED } from "../ending/interruption.ts";
import type { TaskParts } from "../parts.ts";
import type { Task } from "../task.ts";

/** The parts that a task's model calls and tool calls share: the fields of their entries, and how they begin. */
export class CallEvidence {
  readonly task: Task;
  /** The owner of the budgets that the calls are charged to. */
  readonly payer: {
    readonly workspaceId: number;
    readonly agent: { readonly id: number; readonly name: string };
  };
  readonly #parts: Pick<TaskParts, "budgets" | "db" | "ledger">;

  constructor(parts: Pick<TaskParts, "budgets" | "db" | "ledger">, task: Task) {
    this.#parts = parts;
    this.task = task;
    this.payer = { workspaceId: task.workspaceId, agent: { id: task.agentId, name: task.agent } };
  }

  draft(fields: Pick<EntryDraft, "phase" | "action" | "outcome"> & Partial<EntryDraft>): EntryDraft {
    const { createdBy: actor, agent, tier, id } = this.task;
    return { channel: "system", actor, agent, tier, task: id, ...fields };
  }

  /**
   * Begins a call in one transaction, once its budgets permit it.
   * @param denied creates the entry of a refusal
   * @throws AgentDenied `credits_exhausted`, `invalid_token`, each with its entry on disk
   */
  async begin<Begun>(
    signal: AbortSignal,
    denied: (code: string) => EntryDraft,
    work: (tx: Tx, reserve: ReserveCredits) => Promise<Begun>,
  ): Promise<Begun> {
    const { budgets, db } = this.#parts;
    return this.recordRefusal(denied, () =>
      budgets.admit(signal, (reserve) => db.tx(this.task.workspaceId, (tx) => work(tx, reserve))),
    );
  }

  /**
   * Runs `work`. Records a refusal if the call is refused before anything is sent.
   * @throws AgentDenied
   */
  async recordRefusal<Result>(
    denied: (code: string) => EntryDraft,
    work: () => Promise<Result>,
  ): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      const isTokenEnded = error instanceof AgentDenied && error.code === TOKEN_ENDED;
      if (!isTokenEnded && !(error instanceof Problem)) throw error;
      await this.#record(denied(error.code));
      throw error instanceof AgentDenied ? error : new AgentDenied(error.code, error.message);
    }
  }

  /** In a transaction of the run, which another node may have taken over. */
  async #record(draft: EntryDraft): Promise<void> {
    const { db, ledger } = this.#parts;
    const { workspaceId } = this.task;
    await db.tx(workspaceId, (tx) => ledger.append(tx, workspaceId, draft));
  }
}
