import type { BeforeToolCall, Deny } from "../../agents/index.ts";
import { AwaitingApproval, presentCall } from "../approvals/present.ts";
import { type Approval, countPending, PENDING_LIMIT } from "../approvals/rows.ts";
import type { TaskParts } from "../parts.ts";
import { markAwaiting } from "../rows/tasks.ts";
import type { Task } from "../task.ts";
import type { CallGuard } from "./call-guard.ts";
import type { RunJournal } from "./journal.ts";

export interface AskPeopleParts
  extends Pick<TaskParts, "db" | "ledger" | "tools" | "clock" | "approvalExpiresMs"> {
  readonly task: Task;
  readonly guard: Pick<CallGuard, "enter">;
  readonly journal: Pick<RunJournal, "announce">;
}

/**
 * Presents a call for approval and ends the run.
 * @param before the same call as presented earlier; decisions on it no longer count
 * @returns the reason if the call cannot be presented
 * @throws AwaitingApproval if it was
 */
export async function askPeople(
  parts: AskPeopleParts,
  call: BeforeToolCall,
  before: Approval | undefined,
): Promise<Deny> {
  const { task, guard, journal, db, ledger, tools, clock, approvalExpiresMs: expiresMs } = parts;
  const { workspaceId, createdBy: actor, tier } = task;
  const refusal = await db.tx(workspaceId, async (tx) => {
    const { name, approvalsRequired: required } = await guard.enter(tx);
    const tool = tools.catalogue.find(workspaceId, call.tool);
    if (!tool) return `The tool ${call.tool} no longer exists.`;
    if ((await countPending(tx, workspaceId)) >= PENDING_LIMIT) {
      return "Too many calls in this workspace are already waiting for a person.";
    }
    const presentation = {
      ...{ task, callId: call.id, arguments: JSON.stringify(call.arguments), tool, agent: name, required },
      ...{ now: clock.now(), expiresMs, draft: { channel: "system", actor, tier } as const },
    };
    await presentCall(tx, ledger, presentation, before);
    if (!(await markAwaiting(tx, workspaceId, task.id)))
      throw new Error("a task that requests approval is not running");
    await journal.announce(tx, call);
    return null;
  });
  if (refusal !== null) return { deny: refusal };
  throw new AwaitingApproval(call.id);
}
