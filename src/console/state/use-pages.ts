import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { List } from "../../http/api.ts";
import { type ApiProblem, asProblem } from "../api/problem.ts";
import { useSession } from "./session.tsx";

/** A list that is loaded page by page as the reader scrolls. */
export interface Pages<Item> {
  readonly items: readonly Item[];
  readonly problem: ApiProblem | null;
  readonly isLoading: boolean;
  /** Whether the last page has been read. */
  readonly isWhole: boolean;
  /** Reads the next page, unless a read is running or no page is left. */
  more(): void;
  reload(): void;
  change(update: (items: readonly Item[]) => readonly Item[]): void;
}

const RETRY_MS = 5_000;

/**
 * Reads a list from its start whenever `key` changes and when events may have been missed. `read` returns the page
 * after a cursor. A list that only grows (`onlyGrows`) is not read again for missed events: the reader's position is
 * kept.
 */
export function usePages<Item>(
  key: string,
  read: (cursor: string | undefined, signal: AbortSignal) => Promise<List<Item>>,
  { onlyGrows = false }: { readonly onlyGrows?: boolean } = {},
): Pages<Item> {
  const { feed } = useSession();
  const [items, setItems] = useState<readonly Item[]>([]);
  const [problem, setProblem] = useState<ApiProblem | null>(null);
  const [isLoading, setLoading] = useState(true);
  const [isWhole, setWhole] = useState(false);
  const [round, setRound] = useState(0);
  const reader = useRef(read);
  reader.current = read;
  /** The current read; answers of earlier reads are discarded. */
  const current = useRef<{ readonly abort: AbortController; cursor: string | undefined; busy: boolean }>(
    null,
  );
  const reload = useCallback(() => setRound((before) => before + 1), []);

  const next = useCallback(
    async (isFirst: boolean) => {
      const reading = current.current;
      if (!reading || reading.busy) return;
      reading.busy = true;
      setLoading(true);
      const { signal } = reading.abort;
      try {
        await feed.ready;
        // A page may be empty without being the last one.
        const found: Item[] = [];
        do {
          const page = await reader.current(reading.cursor, signal);
          if (signal.aborted) return;
          found.push(...page.data);
          reading.cursor = page.next_cursor ?? undefined;
        } while (found.length === 0 && reading.cursor !== undefined);
        setItems((before) => (isFirst ? found : [...before, ...found]));
        setWhole(reading.cursor === undefined);
        setProblem(null);
      } catch (error) {
        if (!signal.aborted) setProblem(asProblem(error));
      } finally {
        reading.busy = false;
        if (!signal.aborted) setLoading(false);
      }
    },
    [feed],
  );

  const shown = useRef<string | null>(null);
  useEffect(() => {
    if (shown.current !== key) setItems([]);
    shown.current = key;
    const reading = { abort: new AbortController(), cursor: undefined, busy: false };
    current.current = reading;
    setWhole(false);
    void next(true);
    return () => reading.abort.abort();
  }, [key, round, next]);

  useEffect(() => (onlyGrows ? undefined : feed.onGap(reload)), [feed, reload, onlyGrows]);
  useEffect(() => {
    if (problem === null || (problem.status !== 0 && problem.status < 500)) return undefined;
    const retry = setTimeout(reload, RETRY_MS);
    return () => clearTimeout(retry);
  }, [problem, reload]);

  const more = useCallback(() => {
    if (current.current?.cursor !== undefined) void next(false);
  }, [next]);
  const change = useCallback((update: (items: readonly Item[]) => readonly Item[]) => setItems(update), []);
  return { items, problem, isLoading, isWhole, more, reload, change };
}
