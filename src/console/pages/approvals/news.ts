import type { Approval, FeedEvents } from "../../../http/api.ts";
import { call } from "../../api/client.ts";
import type { Feed } from "../../state/feed.ts";

export type Change = FeedEvents["approval.changed"];

/** Who is told of approvals that have changed. */
export interface NewsListener {
  /** As the feed tells it: at once, with names and a status alone. @returns whether the whole approval is wanted */
  changed(change: Change): boolean;
  /** All that a task has asked for, as it is now. */
  read(approvals: readonly Approval[]): void;
  /** So much has changed that it is to be read anew. */
  reload(): void;
}

/** Each reading is a call, and an entry in the ledger: changes that come closer together than this share one. */
const SHORTEST_MS = 1_500;
const FIRST_MS = 150;
/** Tasks whose approvals are read one by one; of more, lists are read anew. */
const MOST_TASKS = 6;
const PAGE = 200;

/** What the feed tells of approvals, filled with what it leaves out, once for all parts of the page. */
export class ApprovalNews {
  readonly #feed: Feed;
  readonly #listeners = new Set<NewsListener>();
  #tasks = new Set<string>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #last = 0;

  constructor(feed: Feed) {
    this.#feed = feed;
  }

  /** @returns what ends it */
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
      // Whoever reads anew meets the same problem, and shows it.
      this.#reloadAll();
    }
  }

  #reloadAll(): void {
    for (const listener of this.#listeners) listener.reload();
  }
}

/** All that a task has asked for. */
export async function approvalsOf(task: string, signal?: AbortSignal): Promise<readonly Approval[]> {
  return allPages({ status: "all", task }, signal);
}

/** A list to its end. @throws ApiProblem */
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
