import type { Tx } from "../store/db.ts";
import type { NewTask, TaskEnd } from "./store.ts";

/** Closes the row of a task that must not run, and for which no end is written to the ledger. */
export async function closeRow(
  tx: Tx,
  workspaceId: number,
  id: string,
  end: Omit<TaskEnd, "finishSeq"> & { readonly finishSeq: number | null },
): Promise<void> {
  await tx.run(
    `UPDATE tasks SET status = $3, error_code = $4, error_message = $5, finish_seq = $6, finished_at = $7,
       open_model_call = NULL, seal = NULL WHERE workspace_id = $1 AND id = $2 AND finished_at IS NULL`,
    [
      workspaceId,
      id,
      end.status,
      end.error?.code ?? null,
      end.error?.message ?? null,
      end.finishSeq,
      end.finishedAt,
    ],
  );
}

/** A task's columns according to the ledger. */
export type ProvenColumns = Pick<NewTask, "agent" | "tier" | "createdBy" | "dispatchSeq"> & {
  readonly credits: number;
};

/** Overwrites a changed row with the ledger's values. Afterwards the row has no open call. */
export async function restoreRow(
  tx: Tx,
  workspaceId: number,
  id: string,
  { agent, tier, createdBy, dispatchSeq, credits }: ProvenColumns,
): Promise<void> {
  await tx.run(
    `UPDATE tasks SET agent = $3, tier = $4, created_by = $5, dispatch_seq = $6, credits = $7, status = 'queued',
       open_model_call = NULL, model = NULL, input_tokens = 0, output_tokens = 0, steps = 0
     WHERE workspace_id = $1 AND id = $2 AND finished_at IS NULL`,
    [workspaceId, id, agent, tier, createdBy, dispatchSeq, credits],
  );
}
