import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { Approval } from "../../../http/api.ts";
import type { ApiProblem } from "../../api/problem.ts";
import { useSession } from "../../state/session.tsx";
import { startRead } from "../../state/start-read.ts";
import { keyOf } from "./address.ts";
import { type ApprovalNews, allPages } from "./news.ts";

export interface PendingApprovals {
  /** Ordered by deadline, earliest first. Undefined before the first answer. */
  readonly items: readonly Approval[] | undefined;
  readonly problem: ApiProblem | null;
  /** Approvals that arrived since the page was opened, sorted by name; from the last read only. */
  readonly arrived: readonly Approval[];
  reload(): void;
}

/** All waiting approvals, updated from the feed. REST returns the newest first, so the most urgent come last. */
export function useWaiting(news: ApprovalNews): PendingApprovals {
  const { feed } = useSession();
  const [items, setItems] = useState<ReadonlyMap<string, Approval> | undefined>(undefined);
  const [arrived, setArrived] = useState<readonly Approval[]>([]);
  const [problem, setProblem] = useState<ApiProblem | null>(null);
  const [round, setRound] = useState(0);
  const reload = useCallback(() => setRound((before) => before + 1), []);
  /** Changes received since the running read began, which may be newer than its result. */
  const heard = useRef(new Map<string, Approval | null>());
  const known = useRef<ReadonlySet<string> | null>(null);

  const show = useCallback((next: ReadonlyMap<string, Approval>) => {
    const before = known.current;
    known.current = new Set([...(before ?? []), ...next.keys()]);
    if (before) {
      const fresh = [...next].filter(([key]) => !before.has(key)).map(([, approval]) => approval);
      if (fresh.length > 0) setArrived(fresh);
    }
    setItems(next);
  }, []);

  useEffect(() => {
    heard.current.clear();
    return startRead(feed, (signal) => allPages({ status: "pending" }, signal), {
      show(found) {
        const next = new Map(found.map((approval) => [keyOf(approval), approval]));
        for (const [key, approval] of heard.current) {
          if (approval) next.set(key, approval);
          else next.delete(key);
        }
        show(next);
        setProblem(null);
      },
      fail: setProblem,
      retry: reload,
    });
  }, [feed, round, reload, show]);

  const shown = useRef(items);
  shown.current = items;
  useEffect(() => {
    const put = (changes: readonly (readonly [string, Approval | null])[]) => {
      for (const [key, approval] of changes) heard.current.set(key, approval);
      if (!shown.current) return;
      const next = new Map(shown.current);
      for (const [key, approval] of changes) {
        if (approval) next.set(key, approval);
        else next.delete(key);
      }
      shown.current = next;
      show(next);
    };
    const ends = [
      feed.onGap(reload),
      news.listen({
        changed(change) {
          if (change.status === "pending") return true;
          put([[keyOf(change), null]]);
          return false;
        },
        read: (approvals) =>
          put(approvals.map((one) => [keyOf(one), one.status === "pending" ? one : null] as const)),
        reload,
      }),
    ];
    return () => {
      for (const end of ends) end();
    };
  }, [feed, news, reload, show]);

  return { items: items && inOrder([...items.values()]), problem, arrived, reload };
}

function inOrder(approvals: Approval[]): Approval[] {
  return approvals.sort(
    (a, b) => compare(a.expires_at, b.expires_at) || compare(a.presented_at, b.presented_at),
  );
}

/** Compares RFC 3339 times in UTC with milliseconds, which sort as text. */
function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}
