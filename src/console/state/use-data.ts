import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { FeedEventName } from "../../http/api.ts";
import { type AnswerOf, type CallOptions, call, type RouteName } from "../api/client.ts";
import type { ApiProblem } from "../api/problem.ts";
import { useSession } from "./session.tsx";
import { startRead } from "./start-read.ts";

/** Data of a route, kept up to date. */
export interface Loaded<Value> {
  /** The latest data; undefined before the first answer. */
  readonly data: Value | undefined;
  /** Why the last read failed. Earlier data stays. */
  readonly problem: ApiProblem | null;
  readonly isLoading: boolean;
  reload(): void;
  /** Replaces the data with something newer: the result of an action, or an event. */
  change(update: (value: Value) => Value): void;
}

/** Each read is a call and a ledger entry: events that come closer together than this share one read. */
const SHORTEST_MS = 1_500;

/**
 * Reads a route, and reads it again after an event in `on` or a gap in the feed. With `options` null, nothing is
 * read.
 */
export function useData<Name extends RouteName>(
  name: Name,
  options: CallOptions<Name> | null,
  on: readonly FeedEventName[] = [],
): Loaded<AnswerOf<Name>> {
  const { feed } = useSession();
  const [data, setData] = useState<AnswerOf<Name> | undefined>(undefined);
  const [problem, setProblem] = useState<ApiProblem | null>(null);
  const [isLoading, setLoading] = useState(options !== null);
  const [round, setRound] = useState(0);
  const reload = useCallback(() => setRound((before) => before + 1), []);
  const key = options === null ? null : JSON.stringify([name, options]);
  const given = useRef(options);
  given.current = options;
  const shown = useRef<string | null>(null);

  useEffect(() => {
    if (key === null || given.current === null) return undefined;
    // Do not show another address's answer.
    if (shown.current !== key) setData(undefined);
    shown.current = key;
    setLoading(true);
    const asked = given.current;
    return startRead(feed, (signal) => call(name, { ...asked, signal }), {
      show(answer) {
        setData(answer);
        setProblem(null);
        setLoading(false);
      },
      fail(failed) {
        setProblem(failed);
        setLoading(false);
      },
      retry: reload,
    });
  }, [feed, name, key, round, reload]);

  const events = on.join();
  useEffect(() => {
    if (key === null) return undefined;
    let last = Date.now();
    let later: ReturnType<typeof setTimeout> | undefined;
    const soon = () => {
      if (later !== undefined) return;
      later = setTimeout(
        () => {
          later = undefined;
          last = Date.now();
          reload();
        },
        Math.max(0, last + SHORTEST_MS - Date.now()),
      );
    };
    const ends = on.map((event) => feed.listen(event, soon));
    ends.push(feed.onGap(soon));
    return () => {
      clearTimeout(later);
      for (const end of ends) end();
    };
    // `events` stands in for the list, which is a new array at each render.
  }, [feed, key, events, reload]);

  const change = useCallback((update: (value: AnswerOf<Name>) => AnswerOf<Name>) => {
    setData((before) => (before === undefined ? before : update(before)));
  }, []);
  return { data, problem, isLoading, reload, change };
}
