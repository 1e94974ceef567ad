import type { Approval, FeedEvents } from "../../../http/api.ts";
import { call } from "../../api/client.ts";
import type { Feed } from "../../state/feed.ts";

export type Change = FeedEvents["approval.changed"];

/** Notified of changed approvals. */
export interface NewsListener {
  /** Called at once, with only names and a status. @returns whether to read the whole approval */
  changed(change: Change): boolean;
  /** The current approvals of a task. */
  read(approvals: readonly Approval[]): void;
  /** Too much has changed: read everything again. */
  reload(): void;
}

/** Each read is a call and a ledger entry: changes that come closer together than this share one read. */
const SHORTEST_MS = 1_500;
const FIRST_MS = 150;
/** Up to this many tasks are read one by one; beyond it, the lists are read again. */
const MOST_TASKS = 6;
const PAGE = 200;

/** Approval events from the feed, completed with a read that all parts of the page share. */
export class ApprovalNews {
  readonly #feed: Feed;
  readonly #listeners = new Set<NewsListener>();
  #tasks = new Set<string>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #last = 0;

  constructor(feed: Feed) {
    this.#feed = feed;
  }

  /** @returns a function that stops it */
  start(): () => void {
    const end = this.#feed.listen("approval.changed", (change) => this.#take(change));
    return () => {
      end();
      clearTimeout(this.#timer);
      this.#timer = undefined;
      this.#tasks.clear();
    };
  }

  listen(listener: NewsListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #take(change: Change): void {
    const wanted = [...this.#listeners].map((listener) => listener.changed(change));
    if (!wanted.includes(true)) return;
    this.#tasks.add(change.task);
    this.#timer ??= setTimeout(
      () => void this.#readAll(),
      Math.max(FIRST_MS, this.#last + SHORTEST_MS - Date.now()),
    );
  }

  async #readAll(): Promise<void> {
    const tasks = [...this.#tasks];
    this.#tasks = new Set();
    this.#timer = undefined;
    this.#last = Date.now();
    if (tasks.length > MOST_TASKS) return this.#reloadAll();
    try {
      for (const task of tasks) {
        const approvals = await approvalsOf(task);
        for (const listener of this.#listeners) listener.read(approvals);
      }
    } catch {
      // Listeners that reload run into the same problem and show it.
      this.#reloadAll();
    }
  }

  #reloadAll(): void {
    for (const listener of this.#listeners) listener.reload();
  }
}

export async function approvalsOf(task: string, signal?: AbortSignal): Promise<readonly Approval[]> {
  return allPages({ status: "all", task }, signal);
}

/** All pages of a list. @throws ApiProblem */
export async function allPages(
  filter: { readonly status: "all" | "pending"; readonly task?: string },
  signal?: AbortSignal,
): Promise<readonly Approval[]> {
  const found: Approval[] = [];
  let cursor: string | undefined;
  do {
    const query = { ...filter, limit: PAGE, ...(cursor === undefined ? {} : { cursor }) };
    const page = await call("GET /v1/approvals", { query, ...(signal ? { signal } : {}) });
    found.push(...page.data);
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined);
  return found;
}
