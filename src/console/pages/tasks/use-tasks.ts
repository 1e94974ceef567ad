import { useCallback, useEffect, useRef } from "preact/hooks";
import type { FeedEvents, Task } from "../../../http/api.ts";
import { call } from "../../api/client.ts";
import { useSession } from "../../state/session.tsx";
import { type Pages, usePages } from "../../state/use-pages.ts";
import { merge, rowOf, type TaskFilter, type TaskRow, titleOf } from "./rows.ts";

const PAGE = 200;
/** Changes that come closer together are shown together. */
const TOGETHER_MS = 100;
/** Rows that come into view closer together are asked for together. */
const TITLES_MS = 400;
/** More prompts than this are read as one page of the list: each reading is an entry in the ledger. */
const READ_SINGLY = 3;

interface ListQuery {
  readonly agent?: string;
  readonly status?: Task["status"];
}

export interface LiveTasks extends Pages<TaskRow> {
  /** To be told of each row that is drawn without its title, which is then read, once. */
  wantTitle(id: string): void;
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

function useTitles({ change }: Pages<TaskRow>, query: ListQuery): (id: string) => void {
  const asked = useRef(new Set<string>());
  const wanted = useRef<string[]>([]);
  const later = useRef<ReturnType<typeof setTimeout>>(undefined);
  const filter = useRef(query);
  filter.current = query;
  useEffect(() => () => clearTimeout(later.current), []);

  const read = useCallback(async () => {
    later.current = undefined;
    const ids = wanted.current;
    wanted.current = [];
    const titles = new Map<string, string | null>();
    // Whatever cannot be read keeps its id as its title.
    for (const tasks of await readTasks(ids, filter.current).catch(() => [])) {
      titles.set(tasks.id, titleOf(tasks.prompt));
    }
    change((rows) =>
      rows.map((row) => {
        const title = row.title === undefined ? titles.get(row.id) : undefined;
        return title === undefined ? row : { ...row, title };
      }),
    );
  }, [change]);

  return useCallback(
    (id: string) => {
      if (asked.current.has(id)) return;
      asked.current.add(id);
      wanted.current.push(id);
      later.current ??= setTimeout(() => void read(), TITLES_MS);
    },
    [read],
  );
}

async function readTasks(ids: readonly string[], query: ListQuery): Promise<readonly Task[]> {
  if (ids.length > READ_SINGLY)
    return (await call("GET /v1/tasks", { query: { ...query, limit: PAGE } })).data;
  return Promise.all(ids.map((id) => call("GET /v1/tasks/:id", { params: { id } })));
}
