import { Elysia } from "elysia";
import Type from "typebox";
import { type Clock, timestamp } from "../../base/clock.ts";
import { Problem } from "../../base/errors.ts";
import type { ProvenApproval } from "../../tasks/approvals/proven.ts";
import type { ApprovalStatus } from "../../tasks/approvals/rows.ts";
import type { ApprovalService } from "../../tasks/approvals/service.ts";
import type { TaskService } from "../../tasks/service.ts";
import { isFinal } from "../../tasks/task.ts";
import { viewTask } from "../../tasks/view.ts";
import { DEFAULT_LIMIT, decodeCursor, PAGE, pageOf } from "../answer/page.ts";
import { type EndpointContext, endpoint } from "../endpoint.ts";
import { isSeq } from "../ledger/entry.ts";

const Reason = Type.String({
  minLength: 1,
  maxLength: 10_000,
  description: "The reason. If the call is denied, the model is given it.",
});
/** The statuses selected by each value of the list's filter. */
const LISTED = {
  pending: ["pending"],
  approved: ["approved"],
  denied: ["denied"],
  expired: ["expired"],
  withdrawn: ["withdrawn"],
  decided: ["approved", "denied", "expired"],
  all: ["pending", "approved", "denied", "expired", "withdrawn"],
} as const satisfies Record<string, readonly ApprovalStatus[]>;
const STATUSES = ["pending", "approved", "denied", "expired", "withdrawn", "decided", "all"] as const;
const ApprovalsQuery = Type.Object(
  {
    ...PAGE,
    status: Type.Optional(
      Type.Enum([...STATUSES], {
        default: "pending",
        description: "`decided`: approved, denied or expired. `withdrawn`: its task ended first.",
      }),
    ),
    agent: Type.Optional(Type.String({ minLength: 1, maxLength: 63 })),
    tool: Type.Optional(
      Type.String({ minLength: 1, maxLength: 200, description: "The full name, such as `github.merge`." }),
    ),
    task: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
  },
  { additionalProperties: false },
);
export const DecisionBody = Type.Object(
  {
    decision: Type.Enum(["approve", "deny"]),
    reason: Type.Optional(Reason),
    arguments: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description: "With `approve`: arguments that replace the requested ones.",
      }),
    ),
    arguments_hash: Type.Optional(
      Type.String({
        pattern: "^[0-9a-f]{64}$",
        description:
          "The `arguments_hash` that was reviewed. If the arguments have changed, the answer is 409.",
      }),
    ),
    definition_hash: Type.Optional(
      Type.String({
        pattern: "^[0-9a-f]{64}$",
        description:
          "The `definition_hash` that was reviewed. If the tool or its connector has changed, the answer is 409.",
      }),
    ),
  },
  { additionalProperties: false },
);
export const OverrideBody = Type.Object(
  {
    decision: Type.Enum(["override", "disregard"]),
    reason: Reason,
    output: Type.Optional(
      Type.String({
        maxLength: 1_000_000,
        description: "With `override`: the output that replaces the task's.",
      }),
    ),
  },
  { additionalProperties: false },
);
const tag = "Oversight";

export interface ApprovalRouteParts {
  readonly approvalService: ApprovalService;
  readonly tasks: TaskService;
  readonly clock: Clock;
}

/** Decisions by people: on calls that wait for approval, and on the results of tasks. */
export function approvalRoutes(
  endpoints: EndpointContext,
  { approvalService, tasks, clock }: ApprovalRouteParts,
) {
  const list = endpoint(
    endpoints,
    {
      action: "approval.list",
      scope: "approvals:write",
      summary:
        "List calls that wait for a person, or earlier ones with their decisions, newest first; a page ends early if " +
        "its texts would exceed 4 MiB",
      tag,
      query: ApprovalsQuery,
      status: 200,
    },
    async ({ call, query: { limit = DEFAULT_LIMIT, cursor, status = "pending", agent, tool, task } }) => {
      const before = decodeCursor(cursor, isSeq);
      const { approvals, more } = await approvalService.list(
        call.caller,
        { statuses: LISTED[status], agent, tool, task },
        limit,
        before === undefined ? undefined : Number(before),
      );
      const key = ({ pendingSeq }: ProvenApproval) => String(pendingSeq);
      return { status: 200, body: pageOf(approvals, more, key, viewApproval) };
    },
  );

  const decide = endpoint(
    endpoints,
    {
      action: "oversight.approve",
      scope: "approvals:write",
      summary: "Approve a call, optionally with other arguments, or deny it",
      tag,
      body: DecisionBody,
      status: 200,
    },
    async ({ call, body, params: { id = "", call_id: callId = "" } }) => {
      call.about({ action: body.decision === "approve" ? "oversight.approve" : "oversight.deny" });
      const { approval, isSettled } = await approvalService.decide(call, id, callId, {
        decision: body.decision,
        ...(body.reason === undefined ? {} : { reason: body.reason }),
        ...(body.arguments === undefined ? {} : { arguments: body.arguments }),
        ...(body.arguments_hash === undefined ? {} : { argumentsHash: body.arguments_hash }),
        ...(body.definition_hash === undefined ? {} : { definitionHash: body.definition_hash }),
      });
      const status = !isSettled ? "pending" : body.decision === "approve" ? "approved" : "denied";
      return {
        status: 200,
        body: { task: approval.taskId, call_id: approval.callId, decision: body.decision, status },
      };
    },
  );

  const override = endpoint(
    endpoints,
    {
      action: "oversight.override",
      scope: "approvals:write",
      summary: "Override or disregard a finished task's output, with a reason",
      tag,
      body: OverrideBody,
      status: 200,
    },
    async ({ call, body, params: { id = "" } }) => {
      const { caller } = call;
      call.about({ action: `oversight.${body.decision}` });
      if (caller.agent) {
        throw new Problem(
          "agent_forbidden",
          `This token acts as ${caller.agent.name}: only a person can decide.`,
        );
      }
      const task = await tasks.get(caller, id);
      await tasks.name(call, task);
      if (!isFinal(task.status))
        throw new Problem("task_unfinished", "The task has not finished. Cancel it instead.");
      if (body.output !== undefined && body.decision === "disregard") {
        const message = "is only allowed with the decision override";
        throw new Problem("validation_failed", `/output: ${message}`, {
          errors: [{ path: "/output", message }],
        });
      }
      await tasks.requireProvenEnd(task);
      await call.commit((_tx, record) =>
        record({
          input: body.output,
          output: body.reason,
          oversight: {
            person: caller.person ?? caller.name,
            ...(caller.role === null ? {} : { role: caller.role }),
            decision: body.decision,
            decided_at: timestamp(clock.now()),
            target_seq: task.dispatchSeq,
          },
        }),
      );
      return { status: 200, body: viewTask(task) };
    },
  );

  return new Elysia()
    .get("/v1/approvals", list.handle, list.hook)
    .post("/v1/tasks/:id/approvals/:call_id", decide.handle, decide.hook)
    .post("/v1/tasks/:id/override", override.handle, override.hook);
}

/** A call that waits or waited for people (contract, section 3), with their decisions. */
export function viewApproval(approval: ProvenApproval) {
  const { status, approvedBy, decision } = approval;
  return {
    task: approval.taskId,
    call_id: approval.callId,
    agent: approval.agent,
    tool: approval.tool,
    arguments: approval.arguments === null ? null : (JSON.parse(approval.arguments) as unknown),
    arguments_hash: approval.argumentsHash,
    definition_hash: approval.definitionHash,
    presented_at: timestamp(approval.presentedAt),
    expires_at: timestamp(approval.expiresAt),
    status,
    required: approval.required,
    approved_by: approvedBy.map(({ person, at }) => ({ person, decided_at: at })),
    decided_at: decision?.at ?? null,
    // An expired approval was decided by nobody.
    decided_by: status === "expired" ? null : (decision?.person ?? null),
    decision_seq: approval.decisionSeq,
    reason: approval.reason,
  };
}
