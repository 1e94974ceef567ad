import type { Tx } from "../store/db.ts";
import { withdrawApprovals } from "./approvals/rows.ts";
import { endTask } from "./end.ts";
import { failure } from "./interruption.ts";
import type { TaskParts } from "./parts.ts";
import { closeRow, restoreRow } from "./refused-rows.ts";
import { Retries } from "./retries.ts";
import { forgetAnswers } from "./run/progress.ts";
import { findTask } from "./store.ts";
import type { ProvenTask } from "./task-evidence.ts";

const CHANGED = "What was stored of the task was changed in the database's file. It was not continued.";

/** A task whose rows are not acted on, and what the ledger says of it. */
export interface RefusedTask {
  readonly workspaceId: number;
  readonly id: string;
  readonly proven: ProvenTask | undefined;
}

/**
 * Closes the rows of a task that the ledger has not dispatched, or that has ended there. No entry says anything of such a task:
 * its rows may name anybody. A row of a task that has ended says afterwards what the ledger says.
 */
export async function closeUnproven(
  { db, clock }: Pick<TaskParts, "db" | "clock">,
  { workspaceId, id, proven }: RefusedTask,
): Promise<void> {
  db.seals.report("tasks", { workspace_id: workspaceId, id });
  const end = proven?.end;
  await db.tx(async (tx) => {
    await closeRow(tx, workspaceId, id, {
      status: end?.outcome === "succeeded" || end?.outcome === "cancelled" ? end.outcome : "failed",
      error: end ? null : { code: "internal", message: CHANGED },
      finishSeq: end?.seq ?? null,
      finishedAt: clock.now(),
    });
    await forgetAnswers(tx, workspaceId, id);
    await withdrawApprovals(tx, workspaceId, id);
  });
}

/**
 * Ends a task that was dispatched, and whose rows were changed since, as failed. Its open calls get their outcomes as the ledger has
 * their intents, and its end names who the ledger says dispatched it: nothing of the rows is signed.
 */
export async function endChanged(
  parts: TaskParts,
  { workspaceId, id, proven }: RefusedTask,
  stopping: AbortSignal,
): Promise<void> {
  const { db, hub } = parts;
  const dispatch = proven?.dispatch;
  if (!proven || !dispatch) return;
  db.seals.report("tasks", { workspace_id: workspaceId, id });
  await db.tx(async (tx) => {
    await recordLostIntents(parts, tx, { workspaceId, id, proven });
    await restoreRow(tx, workspaceId, id, {
      agent: dispatch.agent ?? "",
      tier: dispatch.tier ?? 1,
      createdBy: dispatch.actor ?? "system",
      dispatchSeq: dispatch.seq,
      credits: [...proven.outcomes.values()].reduce((sum, { credits = 0 }) => sum + credits, 0),
    });
    await forgetAnswers(tx, workspaceId, id);
  });
  const task = await findTask(db, workspaceId, id);
  if (!task) return;
  const log = hub.open(id, task.eventCeiling + 1);
  const signals = { signal: stopping, stopping, retries: new Retries() };
  await endTask(parts, task, log, failure("internal", CHANGED), signals);
}

async function recordLostIntents(
  { ledger }: Pick<TaskParts, "ledger">,
  tx: Tx,
  { workspaceId, id, proven }: RefusedTask & { readonly proven: ProvenTask },
): Promise<void> {
  for (const [ref, { action = "", actor = "system", agent, tier, tool }] of proven.open) {
    await ledger.append(tx, workspaceId, {
      ...{ phase: "outcome", ref, action, outcome: "failed", code: "interrupted", channel: "system", actor },
      ...{ agent, tier, tool, task: id },
    });
  }
}
