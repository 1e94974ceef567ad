import type { DirectCallRecords } from "../gate/direct/open.ts";
import type { LedgerHistories } from "../gate/ledger-histories.ts";
import type { LimitNotices } from "../gate/notices.ts";
import type { LedgerFaults } from "../ledger/faults.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { Forgetting } from "../store/forgetting.ts";
import { CallAnswers } from "./approvals/answers.ts";
import { TaskCalls } from "./approvals/calls.ts";
import { ApprovalEvidence } from "./approvals/evidence.ts";
import { ApprovalService } from "./approvals/service.ts";
import { openClaims } from "./claims/open.ts";
import type { OpenClaims } from "./claims/shared/open.ts";
import { PayloadEraser } from "./erasure/payload-eraser.ts";
import { PayloadExpiry } from "./erasure/payload-expiry.ts";
import { QuotedPayloads } from "./erasure/quoted-payloads.ts";
import { EventHub } from "./events/hub.ts";
import { SharedEvents } from "./events/shared/shared-events.ts";
import { TASK_EVENTS } from "./events/store.ts";
import type { TaskParts } from "./parts.ts";
import { ConversationMemory } from "./run/conversation-memory.ts";
import { TaskService } from "./service.ts";
import { TaskSignals } from "./signals.ts";

export interface OpenTasksParts
  extends Omit<
    TaskParts,
    "approvals" | "hub" | "claims" | "answers" | "conversations" | "signals" | "histories"
  > {
  readonly histories: Pick<LedgerHistories, "of" | "catchUp" | "taken">;
  /** The nodes that share the store. */
  readonly nodes: Nodes;
  readonly notices: LimitNotices;
  readonly forgetting: Forgetting;
  readonly faults: LedgerFaults;
  readonly direct: Pick<DirectCallRecords, "running" | "reportLeft">;
  /** The maximum number of tasks that this process runs at once. */
  readonly nodeCeiling: number;
  /** The maximum number of tasks that may wait in one workspace. */
  readonly queueLimit: number;
  /** How many days texts are kept. */
  readonly payloadDays: number;
}

/** Tasks, with the approval of their calls and the erasure of their texts. */
export interface OpenTasks {
  /** How tasks and background responses are shared with other nodes. */
  readonly sharing: OpenClaims;
  readonly signals: TaskSignals;
  readonly events: EventHub;
  /** The memory for conversations in progress. */
  readonly conversations: ConversationMemory;
  readonly tasks: TaskService;
  readonly approvalService: ApprovalService;
  /** Tool calls that clients make themselves and that need approval. Each gets a task. */
  readonly calls: TaskCalls;
  readonly quoted: QuotedPayloads;
  readonly eraser: PayloadEraser;
  readonly expiry: PayloadExpiry;
}

export function openTasks(parts: OpenTasksParts): OpenTasks {
  const { db, ledger, lists, faults, histories, workspaces, clock, log, forgetting, direct } = parts;
  const { nodes, notices, nodeCeiling, queueLimit } = parts;
  const { running } = direct;
  const hub = new EventHub(
    db,
    TASK_EVENTS,
    nodes.isShared ? (logs) => new SharedEvents({ db, nodes, clock, log }, logs, TASK_EVENTS) : undefined,
  );
  const approvals = new ApprovalEvidence({ lists, faults });
  const answers = new CallAnswers();
  const conversations = new ConversationMemory();
  const signals = new TaskSignals();
  const sharing = openClaims(parts);
  const { claims, otherNodes } = sharing;
  const tasks = new TaskService(
    { ...parts, approvals, hub, claims, answers, conversations, signals },
    { nodeCeiling, queueLimit, notices, otherNodes, openQueues: sharing.openQueues },
  );
  sharing.add(tasks.claimed);
  const approvalService = new ApprovalService({
    ...parts,
    approvals,
    hub,
    claims,
    signals,
    resumeTask: (queued) => tasks.resumeTask(queued),
    isEnding: (id) => tasks.isEnding(id),
  });
  return {
    sharing,
    signals,
    events: hub,
    conversations,
    tasks,
    approvalService,
    calls: new TaskCalls({ ...parts, answers }, tasks),
    quoted: new QuotedPayloads({
      db,
      ledger,
      lists,
      histories,
      running,
      hub,
      forgetting,
      clock,
      log,
      signals,
      leases: nodes.leases,
    }),
    eraser: new PayloadEraser({
      ...{ db, ledger, lists, histories, running, approvals, hub, forgetting, signals },
    }),
    expiry: new PayloadExpiry({
      ...{ db, ledger, lists, faults, histories, hub, forgetting, clock, log, workspaces, signals },
      leases: nodes.leases,
      days: parts.payloadDays,
    }),
  };
}
