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

const CHANGED = "The stored task was changed in the database file, so it was not resumed.";

/** A task whose rows are not trusted, with what the ledger contains about it. */
export interface RefusedTask {
  readonly workspaceId: number;
  readonly id: string;
  readonly proven: ProvenTask | undefined;
}

/**
 * Closes the rows of a task that the ledger has not dispatched, or that has ended there. No entry is written, since
 * the rows may name anybody. If the task has ended, its row then agrees with the ledger.
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
 * Ends as failed a dispatched task whose rows were changed. Its open calls get outcomes according to their intents in
 * the ledger, and its end names the actor that dispatched it according to the ledger. Nothing is taken from the rows,
 * since they are not signed.
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
