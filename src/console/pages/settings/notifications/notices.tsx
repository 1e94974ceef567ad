import type { JSX } from "preact";
import type { LedgerEntry } from "../../../../http/api.ts";
import { Badge } from "../../../parts/badge.tsx";
import { Card } from "../../../parts/page.tsx";
import { ProblemNote } from "../../../parts/problem.tsx";
import { Time } from "../../../parts/text.tsx";
import { useData } from "../../../state/use-data.ts";

const SHOWN = 20;

/** Recent limit and budget notices, updated live. */
export function Notices(): JSX.Element {
  const query = { order: "desc", limit: SHOWN } as const;
  const exceeded = useData("GET /v1/ledger", { query: { ...query, action: "limit.exceeded" } }, [
    "limit.exceeded",
    "budget.spent",
  ]);
  const warned = useData("GET /v1/ledger", { query: { ...query, action: "budget.warn" } }, ["budget.spent"]);
  const found = [...(exceeded.data?.data ?? []), ...(warned.data?.data ?? [])]
    .sort((a, b) => b.seq - a.seq)
    .slice(0, SHOWN);
  return (
    <Card title="Limits and budgets">
      <ProblemNote problem={exceeded.problem ?? warned.problem} retry={exceeded.reload} />
      {found.length === 0 && exceeded.data && warned.data && (
        <p class="muted">
          No limit has been exceeded, and no budget is nearly spent.{" "}
          <a href="/console/settings/limits">Set limits</a> to be told when that changes.
        </p>
      )}
      <ul class="settings-notices" aria-live="polite" aria-label="Notices">
        {found.map((entry) => (
          <li key={entry.seq}>
            <Time at={entry.ts} />
            <span class="row grow">
              <Mark entry={entry} />
              <span class="break">{wordsOf(entry)}</span>
            </span>
            <a class="small" href={`/console/ledger/${entry.seq}`}>
              Entry {entry.seq}
            </a>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function Mark({ entry }: { readonly entry: LedgerEntry }): JSX.Element {
  if (entry.action === "budget.warn") return <Badge tone="warn" text="nearly spent" />;
  if (entry.detail?.limit === "credits") return <Badge tone="bad" text="spent" />;
  return entry.outcome === "denied" ? (
    <Badge tone="bad" text="refused" />
  ) : (
    <Badge tone="warn" text="exceeded" />
  );
}

/** A limit or budget entry in a sentence. */
function wordsOf({ action, agent, detail }: LedgerEntry): string {
  const budget = agent === null ? "The workspace's budget for this month" : `The daily budget of ${agent}`;
  if (action === "budget.warn") return `${budget} is ${detail?.percent ?? 80}% spent.`;
  if (detail?.limit === "credits") return `${budget} is spent.`;
  const limit = detail?.limit === "tasks" ? "More tasks than the limit" : "More requests than the limit";
  const also = detail?.also === undefined ? "" : "; the other limit was exceeded earlier";
  return `${limit}${detail?.enforcement === "enforced" ? ": requests over it are refused or wait" : ", all of them served"}${also}.`;
}
