import { useCallback, useEffect, useState } from "preact/hooks";
import type { LedgerEntry, LedgerQuery } from "../../../http/api.ts";
import { call } from "../../api/client.ts";
import { type ApiProblem, asProblem } from "../../api/problem.ts";
import { isClientCall } from "../calls/client-calls.ts";

/** The outcome of an intent, or the intent of an outcome. */
export interface EntryPair {
  readonly other: LedgerEntry | null;
  readonly isLoading: boolean;
  readonly problem: ApiProblem | null;
  /** How many entries were searched without finding it. */
  readonly looked: number;
  /** Continues the search; null if everything was searched. */
  readonly further: (() => void) | null;
}

/** Number of entries read at a time: most outcomes follow within this many entries of the same kind. */
const AT_ONCE = 100;

/**
 * Reads the other half of an entry. An outcome names its intent; the outcome of an intent is searched for among later
 * entries with the same action, agent and task.
 */
export function usePair(entry: LedgerEntry): EntryPair {
  const [other, setOther] = useState<LedgerEntry | null>(null);
  const [problem, setProblem] = useState<ApiProblem | null>(null);
  const [isLoading, setLoading] = useState(entry.phase !== "single");
  const [looked, setLooked] = useState(0);
  const [cursor, setCursor] = useState<string | null>(null);

  const look = useCallback(
    async (behind: string | null, signal?: AbortSignal) => {
      setLoading(true);
      setProblem(null);
      const given = signal ? { signal } : {};
      try {
        if (entry.phase === "outcome" && entry.ref !== null) {
          setOther(await call("GET /v1/ledger/:seq", { params: { seq: String(entry.ref) }, ...given }));
          return;
        }
        const query = {
          ...laterOfItsKind(entry),
          limit: AT_ONCE,
          ...(behind === null ? {} : { cursor: behind }),
        };
        const page = await call("GET /v1/ledger", { query, ...given });
        setOther(page.data.find(({ ref }) => ref === entry.seq) ?? null);
        setLooked((before) => before + page.data.length);
        setCursor(page.next_cursor);
      } catch (error) {
        if (!signal?.aborted) setProblem(asProblem(error));
      } finally {
        if (!signal?.aborted) setLoading(false);
      }
    },
    [entry.seq],
  );

  useEffect(() => {
    if (entry.phase === "single") return undefined;
    const abort = new AbortController();
    void look(null, abort.signal);
    return () => abort.abort();
  }, [entry.phase, look]);
  const canGoOn = other === null && cursor !== null && !isLoading;
  return { other, isLoading, problem, looked, further: canGoOn ? () => void look(cursor) : null };
}

function laterOfItsKind({ action, agent, task, ts }: LedgerEntry): LedgerQuery {
  return {
    action,
    from: ts,
    order: "asc",
    ...(agent === null ? {} : { agent }),
    ...(task === null ? {} : { task }),
    ...(isClientCall({ action, task }) ? { outside_tasks: true } : {}),
  };
}
