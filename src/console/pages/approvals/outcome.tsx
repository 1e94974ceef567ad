import type { JSX } from "preact";
import type { Approval } from "../../../http/api.ts";
import { Status } from "../../parts/badge.tsx";
import { Time } from "../../parts/text.tsx";
import { useSession } from "../../state/session.tsx";
import { Exact } from "./exact.tsx";

/** The outcome of a decided or expired call, with a link to its ledger entry. */
export function Outcome({ approval }: { readonly approval: Approval }): JSX.Element {
  const { can } = useSession();
  const { status, decision_seq: seq, reason } = approval;
  return (
    <div class="stack-small">
      <div class="row">
        <Status status={status} />
        <span class="break">{wordsOf(approval)}</span>
        {approval.decided_at !== null && <Time at={approval.decided_at} />}
        {seq !== null && can("ledger:read") && <a href={`/console/ledger/${seq}`}>Entry {seq}</a>}
      </div>
      {reason !== null && (
        <blockquote class="break">
          <bdi>
            <Exact text={reason} />
          </bdi>
        </blockquote>
      )}
    </div>
  );
}

function wordsOf({ status, decided_by, approved_by }: Approval): string {
  switch (status) {
    case "approved": {
      const people = approved_by.map(({ person }) => person).join(", ");
      return `by ${people === "" ? (decided_by ?? "a person") : people}: the call was allowed.`;
    }
    case "denied":
      return `by ${decided_by ?? "a person"}: the call was not made.`;
    case "expired":
      return "Nobody decided in time: the call was not made.";
    case "withdrawn":
      return "The task ended before anybody decided: the call was not made.";
    case "pending":
      return "It is waiting for a decision.";
  }
}
