import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { Approval } from "../../../http/api.ts";
import type { ApiProblem } from "../../api/problem.ts";
import { useSession } from "../../state/session.tsx";
import { startRead } from "../../state/start-read.ts";
import { type ApprovalName, keyOf } from "./address.ts";
import { type ApprovalNews, approvalsOf } from "./news.ts";

export interface SelectedApproval {
  /** Undefined while unknown, or if there is none. */
  readonly approval: Approval | undefined;
  /** Whether the server does not know the approval. */
  readonly isMissing: boolean;
  readonly problem: ApiProblem | null;
  reload(): void;
}

interface LoadedApproval {
  readonly key: string;
  /** Null if there is none. */
  readonly approval: Approval | null;
}

/**
 * The approval named in the address: taken from a list if one contains it, otherwise read. `areListsRead`: the lists
 * are complete, so an approval missing from them must be read.
 */
export function useChosen(
  news: ApprovalNews,
  name: ApprovalName | null,
  listed: readonly Approval[],
  areListsRead: boolean,
): SelectedApproval {
  const { feed } = useSession();
  const [read, setRead] = useState<LoadedApproval | null>(null);
  const [problem, setProblem] = useState<ApiProblem | null>(null);
  const key = name && keyOf({ task: name.task, call_id: name.call });
  const task = name?.task ?? null;
  const inList = key === null ? undefined : listed.find((one) => keyOf(one) === key);
  const own = read?.key === key ? read : null;
  /** The last one shown. It stays until its new state is known. */
  const last = useRef<Approval | undefined>(undefined);
  if (last.current && keyOf(last.current) !== key) last.current = undefined;
  const approval = own?.approval ?? inList ?? last.current;
  last.current = approval;

  const stopReading = useRef<(() => void) | null>(null);
  const reload = useCallback(() => {
    stopReading.current?.();
    if (task === null || key === null) return;
    stopReading.current = startRead(feed, (signal) => approvalsOf(task, signal), {
      show(approvals) {
        setRead({ key, approval: approvals.find((one) => keyOf(one) === key) ?? null });
        setProblem(null);
      },
      fail: setProblem,
      retry: reload,
    });
  }, [feed, task, key]);

  const isUnknown = key !== null && approval === undefined && own === null && areListsRead;
  useEffect(() => {
    if (isUnknown) reload();
  }, [isUnknown, reload]);

  useEffect(() => {
    if (key === null) return undefined;
    const ends = [
      feed.onGap(reload),
      news.listen({
        changed: (change) => keyOf(change) === key,
        read(approvals) {
          const found = approvals.find((one) => keyOf(one) === key);
          if (found) setRead({ key, approval: found });
        },
        reload,
      }),
    ];
    return () => {
      for (const end of ends) end();
      stopReading.current?.();
      setProblem(null);
    };
  }, [feed, news, key, reload]);

  return { approval, isMissing: own?.approval === null, problem, reload };
}
