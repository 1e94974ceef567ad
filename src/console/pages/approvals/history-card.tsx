import type { JSX } from "preact";
import type { Approval } from "../../../http/api.ts";
import { Badge, Status } from "../../parts/badge.tsx";
import { Card } from "../../parts/page.tsx";
import { Show } from "../../parts/problem.tsx";
import { plural, Time } from "../../parts/text.tsx";
import { useData } from "../../state/use-data.ts";
import { addressOf, keyOf, nameOf, WAITING } from "./address.ts";
import { Exact, ExactJson } from "./exact.tsx";
import { isSameJson } from "./json.ts";

const SHOWN = 10;

/** Earlier decisions about the same agent and tool. */
export function HistoryCard({ approval }: { readonly approval: Approval }): JSX.Element {
  const { agent, tool } = approval;
  // One more, because the current approval may be among them.
  const history = useData("GET /v1/approvals", {
    query: { status: "decided", agent, tool, limit: SHOWN + 1 },
  });
  return (
    <Card
      title="Answered before"
      actions={<a href={addressOf({ ...WAITING, tab: "decided", agent, tool })}>All of {tool}</a>}
    >
      <Show of={history}>
        {({ data }) => (
          <Answers
            approval={approval}
            before={data.filter((one) => keyOf(one) !== keyOf(approval)).slice(0, SHOWN)}
          />
        )}
      </Show>
    </Card>
  );
}

function Answers({
  approval,
  before,
}: {
  readonly approval: Approval;
  readonly before: readonly Approval[];
}): JSX.Element {
  if (before.length === 0) {
    return (
      <p class="muted">
        There are no earlier decisions about {approval.tool} for {approval.agent}, or their records were
        removed.
      </p>
    );
  }
  const same = new Set(
    before
      .filter((one) => one.arguments !== null && isSameJson(one.arguments, approval.arguments))
      .map((one) => keyOf(one)),
  );
  return (
    <>
      <p>{summaryOf(before, same)}</p>
      <ol class="answers">
        {before.map((one) => (
          <Answer key={keyOf(one)} approval={one} isSame={same.has(keyOf(one))} />
        ))}
      </ol>
    </>
  );
}

function summaryOf(before: readonly Approval[], same: ReadonlySet<string>): string {
  const asked = `The last ${plural(before.length, "time", "times")}: ${countsOf(before)}.`;
  if (same.size === 0) return `${asked} Never with these arguments.`;
  return `${asked} With exactly these arguments: ${countsOf(before.filter((one) => same.has(keyOf(one))))}.`;
}

function countsOf(approvals: readonly Approval[]): string {
  return (["approved", "denied", "expired"] as const)
    .map((status) => [status, approvals.filter((one) => one.status === status).length] as const)
    .filter(([, count]) => count > 0)
    .map(([status, count]) => `${count} ${status}`)
    .join(", ");
}

function Answer({
  approval,
  isSame,
}: {
  readonly approval: Approval;
  readonly isSame: boolean;
}): JSX.Element {
  const { status, decided_by, decided_at, reason } = approval;
  return (
    <li class="stack-small">
      <div class="row">
        <Status status={status} />
        <span class="break">{decided_by ?? "nobody in time"}</span>
        <Time at={decided_at} />
        {isSame && <Badge tone="info" text="same arguments" />}
        <a class="small" href={addressOf({ ...WAITING, tab: "decided" }, nameOf(approval))}>
          Open
        </a>
      </div>
      {reason !== null && (
        <blockquote class="break">
          <bdi>
            <Exact text={reason} />
          </bdi>
        </blockquote>
      )}
      {!isSame && approval.arguments !== null && (
        <details>
          <summary class="small">Arguments</summary>
          <ExactJson value={approval.arguments} label={`Earlier arguments of ${approval.tool}`} isShort />
        </details>
      )}
      {approval.arguments === null && <span class="muted small">The arguments were erased.</span>}
    </li>
  );
}
