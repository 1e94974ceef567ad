import type { BeforeToolCall, Deny } from "../../agents/index.ts";
import type { Tx } from "../../store/db.ts";
import type { TaskParts } from "../parts.ts";
import { markAwaiting } from "../store.ts";
import type { Task } from "../task.ts";
import { AwaitingApproval, presentCall } from "./present.ts";
import { type Approval, countPending, PENDING_LIMIT } from "./rows.ts";

/** What asking needs of the run that asks. */
export interface AskingRun {
  /** The agent as it is now, read in the transaction. @throws AgentDenied */
  enter(tx: Tx): Promise<{ readonly name: string; readonly approvalsRequired: number }>;
  /** Saves the events so far, and tells readers that a call waits for a person. */
  announce(tx: Tx, call: BeforeToolCall): Promise<void>;
}

/**
 * Puts a call before people, and ends the run.
 * @param before the same call as it was presented earlier: what people said of it counts no more
 * @returns why nobody is asked. @throws AwaitingApproval
 */
export async function askPeople(
  parts: TaskParts,
  run: AskingRun,
  task: Task,
  call: BeforeToolCall,
  before?: Approval,
): Promise<Deny> {
  const { db, ledger, tools, clock, approvalExpiresMs: expiresMs } = parts;
  const { workspaceId, createdBy: actor, tier } = task;
  const refusal = await db.tx(async (tx) => {
    const { name, approvalsRequired: required } = await run.enter(tx);
    const tool = tools.catalogue.find(workspaceId, call.tool);
    if (!tool) return `${call.tool} is not there any more.`;
    if ((await countPending(tx, workspaceId)) >= PENDING_LIMIT) {
      return "Too many calls of this workspace wait for a person already.";
    }
    const presentation = {
      ...{ task, callId: call.id, arguments: JSON.stringify(call.arguments), tool, agent: name, required },
      ...{ now: clock.now(), expiresMs, draft: { channel: "system", actor, tier } as const },
    };
    await presentCall(tx, ledger, presentation, before);
    if (!(await markAwaiting(tx, workspaceId, task.id))) throw new Error("a task that asks is not running");
    await run.announce(tx, call);
    return null;
  });
  if (refusal !== null) return { deny: refusal };
  throw new AwaitingApproval(call.id);
}
