import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Workspace } from "../../../http/api.ts";
import { countText, creditsText, Time } from "../../parts/text.tsx";
import { useFeedState, useSession } from "../../state/session.tsx";
import { useUsage } from "../../state/usage.ts";
import { useData } from "../../state/use-data.ts";

/** Current figures: running and waiting tasks, approvals, remaining budget. */
export function Figures({ workspace }: { readonly workspace: Workspace | undefined }): JSX.Element {
  const { can } = useSession();
  const usage = useUsage();
  const limits = workspace?.limits;
  return (
    <section class="figures" aria-label="Now">
      <Figure
        name="Running"
        value={usage && countText(usage.tasks_running)}
        note={limits ? `of ${countText(limits.concurrent_tasks)} at once` : "tasks"}
        href={can("tasks:read") ? "/console/tasks?status=running" : null}
      />
      <Figure
        name="Queued"
        value={usage && countText(usage.tasks_queued)}
        note="tasks"
        href={can("tasks:read") ? "/console/tasks?status=queued" : null}
      />
      {can("approvals:write") && (
        <Figure
          name="Waiting for approval"
          value={usage && countText(usage.approvals_pending ?? 0)}
          note="calls to decide on"
          level={(usage?.approvals_pending ?? 0) > 0 ? "warn" : undefined}
          href="/console/approvals"
        />
      )}
      <Figure
        name="Requests left"
        value={usage && countText(usage.requests_left)}
        note={usage ? `of ${countText(usage.requests_per_minute)} a minute` : "a minute"}
        used={usage ? 1 - usage.requests_left / usage.requests_per_minute : undefined}
        href={can("settings:write") ? "/console/settings/limits" : null}
      />
      {can("settings:write") && <Credits workspace={workspace} />}
      {can("ledger:read") && <LedgerFigure />}
      <Connection />
    </section>
  );
}

function Credits({ workspace }: { readonly workspace: Workspace | undefined }): JSX.Element {
  const spent = workspace?.usage.credits_this_month;
  const limit = workspace?.budget.credits_per_month ?? null;
  return (
    <Figure
      name="Credits this month"
      value={spent === undefined ? null : creditsText(spent)}
      note={
        workspace === undefined ? "credits" : limit === null ? "no budget set" : `of ${creditsText(limit)}`
      }
      used={spent === undefined || limit === null ? undefined : limit === 0 ? 1 : spent / limit}
      href="/console/settings/limits"
    />
  );
}

/** The ledger's size, and when its head was signed for this page. */
function LedgerFigure(): JSX.Element {
  const { feed } = useSession();
  const head = useData("GET /v1/ledger/consistency", { query: { from: 0 } });
  const [size, setSize] = useState(feed.last("ledger.grown")?.size ?? null);
  const [signedAt, setSignedAt] = useState<string | null>(null);
  useEffect(() => feed.listen("ledger.grown", (grown) => setSize(grown.size)), [feed]);
  useEffect(() => {
    if (head.data) setSignedAt(new Date().toISOString());
  }, [head.data]);
  const known = Math.max(size ?? 0, head.data?.to ?? 0);
  return (
    <Figure
      name="Ledger entries"
      value={known === 0 ? null : countText(known)}
      note={
        signedAt === null ? (
          (head.problem?.message ?? "signed")
        ) : (
          <>
            head signed <Time at={signedAt} />
          </>
        )
      }
      href="/console/ledger"
    />
  );
}

const STATES = {
  connecting: ["Connecting", "…"],
  live: ["Live", "updated live"],
  lost: ["Lost", "figures may be out of date"],
} as const;

function Connection(): JSX.Element {
  const state = useFeedState();
  const [value, note] = STATES[state];
  return (
    <Figure
      name="Connection"
      value={value}
      note={note}
      level={state === "lost" ? "bad" : undefined}
      href={null}
    />
  );
}

type Level = "warn" | "bad";

function Figure({
  name,
  value,
  note,
  used,
  level = levelOf(used),
  href,
}: {
  readonly name: string;
  /** Null while unknown. */
  readonly value: string | null;
  readonly note: ComponentChildren;
  /** The used part of a limit, from 0 to 1. */
  readonly used?: number | undefined;
  readonly level?: Level | undefined;
  /** Null if there is no page to open, or the reader may not open it. */
  readonly href: string | null;
}): JSX.Element {
  const inside = (
    <>
      <span class="figure-name">{name}</span>
      <span class="figure-value number" data-level={level}>
        {value ?? "–"}
      </span>
      {used !== undefined && (
        <span class="bar-meter" data-level={level} aria-hidden="true">
          <span style={{ width: `${Math.min(100, Math.max(0, used * 100))}%` }} />
        </span>
      )}
      <span class="figure-note number">{note}</span>
    </>
  );
  return href === null ? (
    <div class="figure">{inside}</div>
  ) : (
    <a class="figure" href={href}>
      {inside}
    </a>
  );
}

function levelOf(used: number | undefined): Level | undefined {
  if (used === undefined || used < 0.8) return undefined;
  return used < 1 ? "warn" : "bad";
}
