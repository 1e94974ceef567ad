import { useCallback, useEffect, useRef } from "preact/hooks";

/** Each read is a call and a ledger entry: requests that come closer together than this share one. */
const SHORTEST_MS = 1_500;

/** Calls `work` soon, at most once in `shortest` milliseconds. @returns a function that requests such a call */
export function useSoon(work: () => void, shortest = SHORTEST_MS): () => void {
  const given = useRef(work);
  given.current = work;
  const last = useRef(0);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(
    () => () => {
      clearTimeout(timer.current);
      timer.current = undefined;
    },
    [],
  );
  return useCallback(() => {
    if (timer.current !== undefined) return;
    const wait = Math.max(0, last.current + shortest - Date.now());
    timer.current = setTimeout(() => {
      timer.current = undefined;
      last.current = Date.now();
      given.current();
    }, wait);
  }, [shortest]);
}
