import { useCallback, useEffect, useRef } from "preact/hooks";

/** The shortest time between two reads of data that changes often: each read is a ledger entry. */
const SHORTEST_MS = 60_000;

/**
 * Calls `work` at most once a minute, and only while the page is visible.
 * @returns a function that requests such a call
 */
export function useSparingly(work: () => void): () => void {
  const given = useRef(work);
  given.current = work;
  const last = useRef(Date.now());
  const isDue = useRef(false);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);

  const plan = useCallback(() => {
    if (!isDue.current || timer.current !== undefined || document.hidden) return;
    timer.current = setTimeout(
      () => {
        timer.current = undefined;
        if (document.hidden) return;
        isDue.current = false;
        last.current = Date.now();
        given.current();
      },
      Math.max(0, last.current + SHORTEST_MS - Date.now()),
    );
  }, []);

  useEffect(() => {
    document.addEventListener("visibilitychange", plan);
    return () => {
      document.removeEventListener("visibilitychange", plan);
      clearTimeout(timer.current);
      timer.current = undefined;
    };
  }, [plan]);

  return useCallback(() => {
    isDue.current = true;
    plan();
  }, [plan]);
}
