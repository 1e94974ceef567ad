import { useCallback, useEffect, useRef } from "preact/hooks";

/** Each reading is a call, and an entry in the ledger: what comes closer together than this shares one. */
const SHORTEST_MS = 1_500;

/** Calls `work` soon, and at most once in `shortest` milliseconds however often it is asked for. @returns what asks for it */
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
