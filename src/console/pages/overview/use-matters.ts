import { useEffect, useMemo, useState } from "preact/hooks";
import type { Agent, LedgerEntry, List } from "../../../http/api.ts";
import type { ApiProblem } from "../../api/problem.ts";
import { useSession } from "../../state/session.tsx";
import { useUsage, useWorkspaceStatus } from "../../state/usage.ts";
import type { Loaded } from "../../state/use-data.ts";
import { useData } from "../../state/use-data.ts";
import {
  agentBudgetMatters,
  connectorMatters,
  type Failure,
  failureMatters,
  HOUR_MS,
  inOrder,
  limitMatters,
  type Matter,
  monthMatters,
  noticesFrom,
  stopMatters,
  waitingMatters,
} from "./matters.ts";
import type { OverviewReads } from "./reads.ts";
import { useNow } from "./use-now.ts";

const MOST = 200;
const LATEST = 50;

export interface AttentionItems {
  /** Most serious first. */
  readonly matters: readonly Matter[];
  /** Whether everything the reader may see has been read. */
  readonly isWhole: boolean;
  readonly problem: ApiProblem | null;
}

/** Everything that needs attention and that the reader may see, updated live. */
export function useMatters({
  agents,
  workspace,
}: Pick<OverviewReads, "agents" | "workspace">): AttentionItems {
  const { can } = useSession();
  const now = useNow();
  const status = useWorkspaceStatus();
  const usage = useUsage();
  const approvals = useData(
    "GET /v1/approvals",
    can("approvals:write") ? { query: { limit: LATEST } } : null,
    ["approval.changed"],
  );
  const connectors = useData(
    "GET /v1/connectors",
    can("connectors:read") ? { query: { limit: MOST } } : null,
    ["connector.changed"],
  );
  const exceeded = useNotices("limit.exceeded", now);
  const warned = useNotices("budget.warn", now);
  const failed = useFailures();

  const waiting = approvals.data?.data ?? [];
  const count = usage?.approvals_pending ?? waiting.length;
  const isAll = approvals.data?.next_cursor === null;
  const known: readonly Agent[] = agents.data?.data ?? [];
  const entries: readonly LedgerEntry[] = exceeded.data?.data ?? [];
  const matters = inOrder([
    ...stopMatters(status, known),
    ...connectorMatters(connectors.data?.data ?? []),
    ...failureMatters(failed.failures, now, failed.isCut(now)),
    ...(workspace.data ? monthMatters(workspace.data) : []),
    ...agentBudgetMatters([...entries, ...(warned.data?.data ?? [])], known, now),
    ...limitMatters(entries, now),
    ...waitingMatters(count, isAll ? (waiting.at(-1)?.presented_at ?? null) : null),
  ]);
  const read: readonly Loaded<unknown>[] = [
    agents,
    approvals,
    connectors,
    workspace,
    exceeded,
    warned,
    failed.read,
  ];
  return {
    matters,
    isWhole: read.every(({ data, isLoading }) => data !== undefined || !isLoading),
    problem: read.find(({ problem }) => problem !== null)?.problem ?? null,
  };
}

/** The newest entries of an action, from today (UTC) or the last hour. */
function useNotices(action: string, now: number): Loaded<List<LedgerEntry>> {
  const { can } = useSession();
  // A start that moved every minute would cause a read each time.
  const from = new Date(noticesFrom(now)).toISOString();
  const query = { action, from, order: "desc", limit: LATEST } as const;
  return useData("GET /v1/ledger", can("ledger:read") ? { query } : null, ["limit.exceeded", "budget.spent"]);
}

/** Recently failed tasks: those read, and those reported by the feed since. */
function useFailures(): {
  readonly failures: readonly Failure[];
  /** Whether more tasks may have failed in the last hour than were read. */
  readonly isCut: (now: number) => boolean;
  readonly read: Loaded<unknown>;
} {
  const { feed, can } = useSession();
  const read = useData(
    "GET /v1/tasks",
    can("tasks:read") ? { query: { status: "failed", limit: LATEST } } : null,
  );
  const [told, setTold] = useState<readonly Failure[]>([]);
  useEffect(
    () =>
      feed.listen("task.changed", ({ id, status, error, finished_at }) => {
        if (status !== "failed" || finished_at === null) return;
        const failure = { id, code: error?.code ?? "internal", finishedAt: finished_at };
        setTold((before) => [failure, ...before].slice(0, MOST));
      }),
    [feed],
  );
  const { data } = read;
  const failures = useMemo(() => {
    const byId = new Map<string, Failure>();
    for (const { id, error, finished_at } of data?.data ?? []) {
      if (finished_at !== null)
        byId.set(id, { id, code: error?.code ?? "internal", finishedAt: finished_at });
    }
    for (const failure of told) byId.set(failure.id, failure);
    return [...byId.values()];
  }, [data, told]);
  const last = data && data.next_cursor !== null ? data.data.at(-1) : undefined;
  const isCut = (now: number) =>
    told.length >= MOST ||
    (last !== undefined && Date.parse(last.finished_at ?? last.created_at) >= now - HOUR_MS);
  return { failures, isCut, read };
}
