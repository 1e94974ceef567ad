import type { JSX } from "preact";
import { Badge } from "../../parts/badge.tsx";
import { Card } from "../../parts/page.tsx";
import { Loading, ProblemNote } from "../../parts/problem.tsx";
import { Lasting, plural, Time } from "../../parts/text.tsx";
import { useSession } from "../../state/session.tsx";
import type { Matter } from "./matters.ts";
import type { OverviewReads } from "./reads.ts";
import { useMatters } from "./use-matters.ts";

/** What needs attention, most serious first, each linked to the page where it can be resolved. */
export function MatterList({ reads }: { readonly reads: OverviewReads }): JSX.Element {
  const { matters, isWhole, problem } = useMatters(reads);
  return (
    <Card title="Needs attention">
      <p class="unseen" role="status">
        {isWhole && problem === null
          ? `${plural(matters.length, "thing needs", "things need")} attention`
          : ""}
      </p>
      <ProblemNote problem={problem} />
      {matters.length > 0 ? (
        <ul class="matters">
          {matters.map((matter) => (
            <Row key={matter.key} matter={matter} />
          ))}
        </ul>
      ) : isWhole ? (
        problem === null && <AllWell />
      ) : (
        <Loading />
      )}
    </Card>
  );
}

/** What the page checks, and the scopes needed. */
const LOOKED_AT = [
  ["calls waiting for approval", ["approvals:write"]],
  ["connectors that cannot be reached", ["connectors:read"]],
  ["stopped agents", ["agents:read"]],
  ["failed tasks", ["tasks:read"]],
  ["exceeded limits", ["ledger:read"]],
  ["agents' budgets", ["agents:read", "ledger:read"]],
  ["the month's budget", ["settings:write"]],
] as const;

function AllWell(): JSX.Element {
  const { can } = useSession();
  const unseen = LOOKED_AT.flatMap(([what, scopes]) => {
    const missing = scopes.filter((scope) => !can(scope));
    return missing.length === 0 ? [] : [{ what, missing }];
  });
  if (unseen.length > 0) {
    return (
      <div class="stack-small">
        <strong>
          {unseen.length === LOOKED_AT.length
            ? "Your token does not let you see what needs attention."
            : "Nothing that you may see needs attention."}
        </strong>
        <p class="muted">Your token lacks the scopes for the rest:</p>
        <ul class="unseen-matters muted">
          {unseen.map(({ what, missing }) => (
            <li key={what}>
              {what}: <code>{missing.join(", ")}</code>
            </li>
          ))}
        </ul>
      </div>
    );
  }
  return (
    <div class="stack-small">
      <strong>Nothing needs attention.</strong>
      <p class="muted">
        Calls that wait for a person, connectors that cannot be reached, stopped agents, exceeded limits,
        budgets running out and failed tasks appear here automatically.
      </p>
    </div>
  );
}

function Row({ matter }: { readonly matter: Matter }): JSX.Element {
  const { tone, kind, title, text, at, isWaiting, href } = matter;
  return (
    <li class="matter">
      <Badge tone={tone} text={kind} />
      <div class="stack-small grow">
        <span class="row-between">
          <a href={href}>{title}</a>
          {at !== null && (
            <span class="muted small nowrap">
              {isWaiting ? (
                <>
                  the oldest for <Lasting from={at} to={null} />
                </>
              ) : (
                <Time at={at} />
              )}
            </span>
          )}
        </span>
        <span class="muted small break">{text}</span>
      </div>
    </li>
  );
}
