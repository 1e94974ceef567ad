import type { Agents } from "../access/agents.ts";
import type { Tokens } from "../access/tokens.ts";
import type { Workspaces } from "../access/workspaces.ts";
import type { Clock } from "../base/clock.ts";
import type { Ids } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { ToolRegistry } from "../connectors/registry.ts";
import type { Budgets } from "../gate/budget.ts";
import type { LedgerHistories } from "../gate/ledger-histories.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { LedgerLists } from "../ledger/reading/lists.ts";
import type { WorkspaceEstimates } from "../models/expected-cost.ts";
import type { ModelGateway } from "../models/gateway.ts";
import type { WaitingCall } from "../notify/announce.ts";
import type { Db, Tx } from "../store/db.ts";
import type { Vault } from "../vault/vault.ts";
import type { CallAnswers } from "./approvals/answers.ts";
import type { ApprovalEvidence } from "./approvals/evidence.ts";
import type { TaskClaims } from "./claims/claims.ts";
import type { EventHub } from "./events/hub.ts";
import type { ConversationMemory } from "./run/conversation-memory.ts";
import type { TaskSignals } from "./signals.ts";
import type { Task } from "./task.ts";

/** Everything needed to run tasks; assembled in the composition root. */
export interface TaskParts {
  readonly db: Db;
  readonly ledger: Ledger;
  readonly lists: LedgerLists;
  readonly histories: Pick<LedgerHistories, "of" | "catchUp">;
  readonly budgets: Budgets;
  readonly workspaces: Workspaces;
  readonly agents: Agents;
  readonly tokens: Pick<Tokens, "grantOf">;
  readonly modelGateway: ModelGateway;
  readonly tools: ToolRegistry;
  readonly vault: Pick<Vault, "find" | "text">;
  readonly approvals: ApprovalEvidence;
  readonly hub: EventHub;
  readonly claims: TaskClaims;
  readonly answers: CallAnswers;
  readonly estimates: WorkspaceEstimates;
  readonly conversations: ConversationMemory;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  readonly signals: TaskSignals;
  readonly hooks: TaskHooks;
  /** How long a person may take to decide on a call, in milliseconds. */
  readonly approvalExpiresMs: number;
}

/** The parts for what this node does with one task: it writes only as long as it has the claim. */
export function partsOf(
  parts: TaskParts,
  { workspaceId, taskId }: { readonly workspaceId: number; readonly taskId: string },
): TaskParts {
  const { claims, db } = parts;
  return claims.isShared ? { ...parts, db: claims.fence(db, workspaceId, taskId) } : parts;
}

/** Writes to be committed together with a change to a task. */
export interface TaskHooks {
  /** Called in the transaction of a task's end. */
  ending(tx: Tx, task: Pick<Task, "workspaceId" | "id" | "agent" | "status" | "error">): Promise<void>;
  /** Called in the transaction that makes a call wait for a person. */
  approvalRequired(tx: Tx, call: WaitingCall): Promise<void>;
}
