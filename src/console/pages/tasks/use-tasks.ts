import { useCallback, useEffect, useRef } from "preact/hooks";
import type { FeedEvents, Task } from "../../../http/api.ts";
import { call } from "../../api/client.ts";
import { useSession } from "../../state/session.tsx";
import { type Pages, usePages } from "../../state/use-pages.ts";
import { askedText } from "./asked.ts";
import { merge, rowOf, type TaskListFilter, type TaskListRow, titleOf } from "./rows.ts";

const PAGE = 200;
/** Changes that come closer together are shown together. */
const TOGETHER_MS = 100;
/** Rows without a title are collected for this long and read as one page, because each read is a ledger entry. */
const TITLES_MS = 3_000;
/** Allowance for tasks created since, which come before the wanted ones. */
const NEWER = 20;

interface ListQuery {
  readonly agent?: string;
  readonly status?: Task["status"];
}

export interface LiveTasks extends Pages<TaskListRow> {
  /**
   * Called for each visible row without a title, to read the title once. @returns a function to call when the row is
   * out of view
   */
  wantTitle(id: string): () => void;
}

/** The workspace's tasks, newest first, read page by page and updated from the feed. */
export function useTasks(filter: TaskListFilter): LiveTasks {
  const { feed } = useSession();
  const query: ListQuery = {
    ...(filter.agent === "" ? {} : { agent: filter.agent }),
    ...(filter.status === "" ? {} : { status: filter.status }),
  };
  const pages = usePages<TaskListRow>(JSON.stringify(query), async (cursor, signal) => {
    const page = await call("GET /v1/tasks", {
      query: { ...query, limit: PAGE, ...(cursor === undefined ? {} : { cursor }) },
      signal,
    });
    return { data: page.data.map(rowOf), next_cursor: page.next_cursor };
  });

  const now = useRef({ pages, filter });
  now.current = { pages, filter };
  const told = useRef(new Map<string, FeedEvents["task.changed"]>());
  const show = useCallback(() => {
    const { pages: shown, filter: wanted } = now.current;
    // Events received during a read may be newer than its result, and are applied to it afterwards.
    if (told.current.size === 0 || shown.isLoading) return;
    const changes = told.current;
    told.current = new Map();
    shown.change((rows) => merge(rows, changes, wanted, shown.isWhole));
  }, []);
  useEffect(() => {
    let later: ReturnType<typeof setTimeout> | undefined;
    const end = feed.listen("task.changed", (change) => {
      told.current.set(change.id, change);
      later ??= setTimeout(() => {
        later = undefined;
        show();
      }, TOGETHER_MS);
    });
    return () => {
      end();
      clearTimeout(later);
    };
  }, [feed, show]);
  useEffect(show, [pages.isLoading, show]);

  return { ...pages, wantTitle: useTitles(pages, query) };
}

/**
 * @returns a function to call for a visible row without a title, which in turn returns one to call when the row is
 *   out of view
 */
function useTitles({ items, change }: Pages<TaskListRow>, query: ListQuery): (id: string) => () => void {
  const asked = useRef(new Set<string>());
  const wanted = useRef(new Set<string>());
  const later = useRef<ReturnType<typeof setTimeout>>(undefined);
  const now = useRef({ items, query });
  now.current = { items, query };

  const read = useCallback(async () => {
    later.current = undefined;
    // A hidden page reads nothing, and a row that was scrolled past is requested when it is visible again.
    if (document.visibilityState !== "visible" || wanted.current.size === 0) return;
    const ids = wanted.current;
    wanted.current = new Set();
    for (const id of ids) asked.current.add(id);
    const last = now.current.items.findLastIndex(({ id }) => ids.has(id));
    const limit = Math.min(PAGE, last + 1 + NEWER);
    const page = await call("GET /v1/tasks", { query: { ...now.current.query, limit } }).catch(() => null);
    // If a title cannot be read, the id is shown.
    if (page === null) return;
    const titles = new Map(page.data.map((task) => [task.id, titleOf(askedText(task))]));
    change((rows) =>
      rows.map((row) => {
        const title = row.title === undefined ? titles.get(row.id) : undefined;
        return title === undefined ? row : { ...row, title };
      }),
    );
  }, [change]);
  const plan = useCallback(() => {
    if (wanted.current.size > 0) later.current ??= setTimeout(() => void read(), TITLES_MS);
  }, [read]);
  useEffect(() => {
    document.addEventListener("visibilitychange", plan);
    return () => {
      document.removeEventListener("visibilitychange", plan);
      clearTimeout(later.current);
      later.current = undefined;
    };
  }, [plan]);

  return useCallback(
    (id: string) => {
      if (!asked.current.has(id)) wanted.current.add(id);
      plan();
      return () => void wanted.current.delete(id);
    },
    [plan],
  );
}
