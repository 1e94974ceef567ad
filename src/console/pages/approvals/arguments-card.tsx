import type { JSX } from "preact";
import type { Approval } from "../../../http/api.ts";
import { Card } from "../../parts/page.tsx";
import { JsonDiff } from "./diff-view.tsx";
import { ExactJson } from "./exact.tsx";
import { isSameJson } from "./json.ts";

/** The exact arguments of the call, and how they differ from what the agent requested. */
export function ArgumentsCard({
  approval,
  asked,
  seen,
  acknowledge,
}: {
  readonly approval: Approval;
  /** The model's original arguments; undefined if unknown. */
  readonly asked: unknown;
  /** The approval as it was when the reader opened it. */
  readonly seen: Approval;
  readonly acknowledge: () => void;
}): JSX.Element {
  const { arguments: given, arguments_hash: hash, approved_by } = approval;
  const isOther = seen.arguments_hash !== hash;
  const isChanged = asked !== undefined && given !== null && !isSameJson(asked, given);
  return (
    <Card title="Arguments">
      {isOther && (
        <div class="note-warn stack-small" role="alert">
          <strong>The arguments were changed while this page was open.</strong>
          <JsonDiff before={seen.arguments} after={given} label="What has changed since you opened this" />
          <span>
            <button type="button" class="button-small" onClick={acknowledge}>
              I have reviewed the change
            </button>
          </span>
        </div>
      )}
      {given === null ? (
        <p class="note-warn">
          The arguments were erased from the ledger. A call whose arguments cannot be seen cannot be approved,
          but it can be denied.
        </p>
      ) : (
        <ExactJson value={given} label={`Arguments of ${approval.tool}`} />
      )}
      <p class="muted small break">
        A decision applies to exactly these arguments. Their hash: <code>{hash}</code>
      </p>
      {isChanged && (
        <>
          <h3>
            Changed{approved_by[0] ? ` by ${approved_by[0].person}` : ""}: not what the agent had asked for
          </h3>
          <JsonDiff before={asked} after={given} label="The agent's request, and how it was changed" />
        </>
      )}
    </Card>
  );
}
