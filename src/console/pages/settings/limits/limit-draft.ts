import type { Workspace } from "../../../../http/api.ts";
import type { CallOptions } from "../../../api/client.ts";
import { numberOf } from "../../../parts/field.tsx";

type Body = CallOptions<"PATCH /v1/workspace">["body"];

/** Limits as entered in the form. `credits` empty: no budget. */
export interface LimitValues {
  readonly requests: string;
  readonly tasks: string;
  readonly credits: string;
  readonly enforcement: "soft" | "enforced";
}

/** Only the limits that were edited. */
export type LimitDraft = Partial<LimitValues>;

export function valuesOf({ limits, budget }: Workspace): LimitValues {
  return {
    requests: String(limits.requests_per_minute),
    tasks: String(limits.concurrent_tasks),
    credits: budget.credits_per_month === null ? "" : String(budget.credits_per_month),
    enforcement: limits.enforcement,
  };
}

/** The changes to send; null if there are none. */
export function changeOf(draft: LimitDraft, workspace: Workspace): Body | null {
  const { limits, budget } = workspace;
  const requests = draft.requests === undefined ? null : numberOf(draft.requests);
  const tasks = draft.tasks === undefined ? null : numberOf(draft.tasks);
  const changed = {
    ...(requests === null || requests === limits.requests_per_minute
      ? {}
      : { requests_per_minute: requests }),
    ...(tasks === null || tasks === limits.concurrent_tasks ? {} : { concurrent_tasks: tasks }),
    ...(draft.enforcement === undefined || draft.enforcement === limits.enforcement
      ? {}
      : { enforcement: draft.enforcement }),
  };
  const credits = draft.credits === undefined ? undefined : numberOf(draft.credits);
  const body: Body = {
    ...(Object.keys(changed).length === 0 ? {} : { limits: changed }),
    ...(credits === undefined || credits === budget.credits_per_month
      ? {}
      : { budget: { credits_per_month: credits } }),
  };
  return Object.keys(body).length === 0 ? null : body;
}
