import { agentAt } from "../../access/agent-at.ts";
import { ProvenTask } from "../../ledger/reading/proven-task.ts";
import { withdrawApprovals } from "../approvals/rows.ts";
import { type EndingSignals, failure } from "../ending/interruption.ts";
import { openCallsIn, recordLost } from "../ending/lost-calls.ts";
import { endTask } from "../ending/store-retries.ts";
import type { TaskParts } from "../parts.ts";
import { findTask } from "../rows/tasks.ts";
import { forgetAnswers } from "../run/progress.ts";
import { closeRow, restoreRows } from "./refused-rows.ts";

const CHANGED = "The stored task was changed in the database file, so it was not resumed.";

/** A task whose rows are not trusted, with what the ledger contains about it. */
export interface RefusedTask {
  readonly workspaceId: number;
  readonly id: string;
  readonly proven: ProvenTask | undefined;
}

/**
 * Closes the rows of a task that, according to the ledger, was never dispatched or has already ended. No entry is
 * written, since the rows may name anybody. The rows then agree with the ledger, if it contains the task.
 */
export async function closeUnproven(
  { db, claims, clock }: Pick<TaskParts, "db" | "claims" | "clock">,
  { workspaceId, id, proven }: RefusedTask,
): Promise<void> {
  db.seals.report("tasks", { workspace_id: workspaceId, id });
  const { end } = proven ?? {};
  const code = end ? end.code : "internal";
  await db.tx(
    null,
    async (tx) => {
      restoreRows(tx, workspaceId, id, proven ?? new ProvenTask(), null);
      closeRow(tx, workspaceId, id, {
        status: end?.outcome === "succeeded" || end?.outcome === "cancelled" ? end.outcome : "failed",
        error: code === undefined ? null : { code, message: CHANGED },
        finishSeq: end?.seq ?? null,
        finishedAt: clock.now(),
      });
      claims.end(tx, workspaceId, id);
      forgetAnswers(tx, workspaceId, id);
      await withdrawApprovals(tx, workspaceId, id);
    },
    { turnOf: workspaceId },
  );
}

/**
 * Ends a dispatched task whose rows were changed, as failed. Its rows are restored from the ledger first: its open
 * calls get outcomes and are charged according to their intents, and its end names the actor that dispatched it.
 */
export async function endChanged(
  parts: TaskParts,
  { workspaceId, id, proven }: RefusedTask,
  signals: EndingSignals,
): Promise<void> {
  const { db, hub } = parts;
  if (!proven?.dispatch) return;
  const { agent: name, ts = "" } = proven.dispatch;
  db.seals.report("tasks", { workspace_id: workspaceId, id });
  await db.tx(workspaceId, async (tx) => {
    const agent = await agentAt(tx, workspaceId, name, Date.parse(ts));
    restoreRows(tx, workspaceId, id, proven, agent?.id ?? null);
    const restored = await findTask(tx, workspaceId, id);
    if (!restored) return;
    await recordLost(parts, tx, restored, openCallsIn(proven), null, { workspaceId, agent });
    forgetAnswers(tx, workspaceId, id);
  });
  const task = await findTask(db, workspaceId, id);
  if (!task) return;
  const log = hub.open(id, task.eventCeiling + 1);
  await endTask(parts, task, log, failure("internal", CHANGED), signals);
}
