import { useCallback, useEffect, useRef } from "preact/hooks";
import type { FeedEvents, Task } from "../../../http/api.ts";
import { call } from "../../api/client.ts";
import { useSession } from "../../state/session.tsx";
import { type Pages, usePages } from "../../state/use-pages.ts";
import { merge, rowOf, type TaskFilter, type TaskRow, titleOf } from "./rows.ts";

const PAGE = 200;
/** Changes that come closer together are shown together. */
const TOGETHER_MS = 100;
/** Rows whose prompts are not read yet are gathered for so long, and read as one page: each reading is an entry in the ledger. */
const TITLES_MS = 3_000;
/** Tasks that may have been made since, before those that are asked for. */
const NEWER = 20;

interface ListQuery {
  readonly agent?: string;
  readonly status?: Task["status"];
}

export interface LiveTasks extends Pages<TaskRow> {
  /** To be told of each row that is in sight without its title, which is then read, once. @returns what is told when it is out of sight */
  wantTitle(id: string): () => void;
}

/** The workspace's tasks, newest first, read page by page and changed as the feed tells. */
export function useTasks(filter: TaskFilter): LiveTasks {
  const { feed } = useSession();
  const query: ListQuery = {
    ...(filter.agent === "" ? {} : { agent: filter.agent }),
    ...(filter.status === "" ? {} : { status: filter.status }),
  };
  const pages = usePages<TaskRow>(JSON.stringify(query), async (cursor, signal) => {
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
    // What is being read may be older than what was told meanwhile, which is put on top of it then.
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

/** @returns what is told of a row that has come into sight without its title; that returns what is told when it is out of it */
function useTitles({ items, change }: Pages<TaskRow>, query: ListQuery): (id: string) => () => void {
  const asked = useRef(new Set<string>());
  const wanted = useRef(new Set<string>());
  const later = useRef<ReturnType<typeof setTimeout>>(undefined);
  const now = useRef({ items, query });
  now.current = { items, query };

  const read = useCallback(async () => {
    later.current = undefined;
    // A page that nobody looks at reads nothing, and a row that was scrolled past is asked for when it is back.
    if (document.visibilityState !== "visible" || wanted.current.size === 0) return;
    const ids = wanted.current;
    wanted.current = new Set();
    for (const id of ids) asked.current.add(id);
    const last = now.current.items.findLastIndex(({ id }) => ids.has(id));
    const limit = Math.min(PAGE, last + 1 + NEWER);
    const page = await call("GET /v1/tasks", { query: { ...now.current.query, limit } }).catch(() => null);
    // Whatever cannot be read keeps its id as its title.
    if (page === null) return;
    const titles = new Map(page.data.map((task) => [task.id, titleOf(task.prompt)]));
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
