import type { JSX } from "preact";
import type { Approval } from "../../../http/api.ts";
import { Status } from "../../parts/badge.tsx";
import { Time } from "../../parts/text.tsx";
import { type ApprovalsView, addressOf, nameOf } from "./address.ts";
import { escaped } from "./hidden.ts";
import { TimeLeft } from "./time-left.tsx";

const PREVIEW_LENGTH = 160;

/** An approval in a list: the call, its agent, and the time left or the decision. */
export function ApprovalRow({
  approval,
  view,
  isChosen,
}: {
  readonly approval: Approval;
  readonly view: ApprovalsView;
  readonly isChosen: boolean;
}): JSX.Element {
  const { tool, agent, status, required, approved_by } = approval;
  const isWaiting = status === "pending";
  return (
    <a
      class="approval-row"
      href={addressOf(view, nameOf(approval))}
      aria-current={isChosen ? "true" : undefined}
    >
      <span class="approval-row-line">
        <strong class="cut grow">{tool}</strong>
        {isWaiting ? <TimeLeft until={approval.expires_at} /> : <Status status={status} />}
      </span>
      <span class="approval-row-line small">
        <span class="cut grow">
          <span class="muted">by</span> {agent}
        </span>
        {isWaiting && required > 1 && (
          <span class="nowrap">
            {approved_by.length} of {required} approved
          </span>
        )}
        {!isWaiting && approval.decided_by !== null && <span class="cut muted">{approval.decided_by}</span>}
        {!isWaiting && <Time at={approval.decided_at} />}
      </span>
      <span class="cut mono muted">{previewOf(approval)}</span>
    </a>
  );
}

function previewOf({ status, reason, arguments: given }: Approval): string {
  if (status !== "pending" && reason !== null) return escaped(reason.slice(0, PREVIEW_LENGTH));
  if (given === null) return "erased";
  return escaped(JSON.stringify(given).slice(0, PREVIEW_LENGTH));
}
