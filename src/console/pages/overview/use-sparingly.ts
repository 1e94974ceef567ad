import { useCallback, useEffect, useRef } from "preact/hooks";

/** What many events move a little is read so often at most: each reading is an entry in the ledger. */
const SHORTEST_MS = 60_000;

/**
 * Calls `work` after it was asked for, at most once a minute however often that is, and only while the page is seen.
 * @returns what asks for it
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
