import { useCallback, useRef, useState } from "preact/hooks";
import { type ApiProblem, asProblem } from "../api/problem.ts";

/** A user action, such as saving. At most one runs at a time. */
export interface Action {
  readonly isBusy: boolean;
  /** Why the last run failed. */
  readonly problem: ApiProblem | null;
  /** @returns the result of `work`; undefined if it failed or an action was already running */
  run<Result>(work: () => Promise<Result>): Promise<Result | undefined>;
  clear(): void;
}

export function useAction(): Action {
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<ApiProblem | null>(null);
  const busy = useRef(false);
  const run = useCallback(async <Result>(work: () => Promise<Result>): Promise<Result | undefined> => {
    if (busy.current) return undefined;
    busy.current = true;
    setBusy(true);
    setProblem(null);
    try {
      return await work();
    } catch (error) {
      setProblem(asProblem(error));
      return undefined;
    } finally {
      busy.current = false;
      setBusy(false);
    }
  }, []);
  const clear = useCallback(() => setProblem(null), []);
  return { isBusy, problem, run, clear };
}
