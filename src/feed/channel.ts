import { type Clock, every } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { FeedEvent, Usage } from "./events.ts";
import { type FeedReader, FeedText } from "./reader.ts";
import type { Rights } from "./rights.ts";

/** How long changes are gathered before they are told, so that a thing that changes often is told once. */
const GATHER_MS = 100;
/** How often usage and the ledger's size are told at most. */
const TICK_MS = 1_000;
/** Changes that are gathered at once. Past that everybody reads anew. */
const GATHERED_LIMIT = 2_000;
/** After the store could not be read. */
const RETRY_MS = 1_000;

/** Kinds of things whose present state is looked up when it is told, so that only what is committed is told. */
export type Topic = "task" | "approval" | "agent" | "connector" | "workspace";

/** Answers what is to be told of things by their keys, in this order; nothing of those that are not there. */
export type Lookup = (
  workspaceId: number,
  keys: readonly string[],
) => readonly FeedEvent[] | Promise<readonly FeedEvent[]>;

export interface ChannelParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly lookups: Readonly<Record<Topic, Lookup>>;
  /** What is in use, of a workspace or of one agent of it. */
  usage(workspaceId: number, agent: Rights["agent"]): Omit<Usage, "approvals_pending">;
  /** Calls that wait for a person, of a workspace or of one agent of it. */
  approvalsPending(workspaceId: number, agent: Rights["agent"]): Promise<number>;
}

/**
 * What changes in one workspace while somebody listens: gathered, looked up once for all readers, and told to each as far as
 * it may hear of it.
 */
export class Channel {
  readonly #parts: ChannelParts;
  readonly #workspaceId: number;
  readonly #readers = new Set<FeedReader>();
  #events: FeedEvent[] = [];
  #touched = new Map<Topic, Set<string>>();
  #gathered = 0;
  /** Too much has changed, or it could not be looked up. */
  #isOver = false;
  /** What some reader may be told may have changed. */
  #areRightsStale = false;
  #isUsageDue = false;
  /** By the agent's id; 0: all of them. Another map, to be counted anew, once one has changed. */
  #pending = new Map<number, number>();
  #ledgerSize = 0;
  #toldLedgerSize = 0;
  #isFlushing = false;
  #cancel: (() => void) | null = null;
  readonly #endTicks: () => void;

  constructor(parts: ChannelParts, workspaceId: number) {
    this.#parts = parts;
    this.#workspaceId = workspaceId;
    this.#endTicks = every(parts.clock, TICK_MS, () => this.#tick());
  }

  get isEmpty(): boolean {
    return this.#readers.size === 0;
  }

  add(reader: FeedReader): void {
    this.#readers.add(reader);
    this.#flushSoon();
  }

  remove(reader: FeedReader): void {
    this.#readers.delete(reader);
  }

  /** Tells nothing any more. */
  end(): void {
    this.#endTicks();
    this.#cancel?.();
    for (const reader of [...this.#readers]) reader.close();
  }

  publish(event: FeedEvent): void {
    if (this.#gather()) this.#events.push(event);
  }

  touch(topic: Topic, key: string): void {
    if (topic === "approval") this.#pending = new Map();
    let keys = this.#touched.get(topic);
    if (keys?.has(key)) return;
    if (!this.#gather()) return;
    if (!keys) {
      keys = new Set();
      this.#touched.set(topic, keys);
    }
    keys.add(key);
  }

  rightsChanged(): void {
    this.#areRightsStale = true;
    this.#flushSoon();
  }

  grown(size: number): void {
    this.#ledgerSize = size;
  }

  /** Whether there is room for one more. */
  #gather(): boolean {
    this.#flushSoon();
    if (this.#gathered < GATHERED_LIMIT) {
      this.#gathered += 1;
      return !this.#isOver;
    }
    this.#isOver = true;
    this.#forget();
    return false;
  }

  #forget(): void {
    this.#events = [];
    this.#touched = new Map();
  }

  #tick(): void {
    // A token, a session and a rotated secret also end by their time, of which nobody tells.
    for (const reader of [...this.#readers]) reader.closeIfOver();
    if (this.isEmpty) return;
    this.#isUsageDue = true;
    if (this.#ledgerSize !== this.#toldLedgerSize) {
      this.#toldLedgerSize = this.#ledgerSize;
      this.publish({ name: "ledger.grown", key: "", data: { size: this.#ledgerSize } });
    }
    this.#flushSoon();
  }

  #flushSoon(ms = GATHER_MS): void {
    if (this.#cancel || this.#isFlushing) return;
    this.#cancel = this.#parts.clock.after(ms, () => {
      this.#cancel = null;
      void this.#flush();
    });
  }

  /** Never rejects. */
  async #flush(): Promise<void> {
    this.#isFlushing = true;
    const [events, touched, isOver] = [this.#events, this.#touched, this.#isOver];
    this.#forget();
    this.#gathered = 0;
    this.#isOver = false;
    let retryMs = GATHER_MS;
    try {
      // First, so that nothing is told that happened after its reader's rights had ended.
      await this.#renewRights();
      if (isOver) for (const reader of this.#readers) reader.reset();
      else this.#tell([...events, ...(await this.#lookUp(touched))]);
      await this.#tellUsage();
    } catch (error) {
      this.#parts.log.warn("a feed cannot be told", { workspace_id: this.#workspaceId, error });
      this.#isOver = true;
      this.#areRightsStale = true;
      retryMs = RETRY_MS;
    }
    this.#isFlushing = false;
    if (!this.isEmpty && this.#isDue()) this.#flushSoon(retryMs);
  }

  #isDue(): boolean {
    if (this.#gathered > 0 || this.#isOver || this.#areRightsStale || this.#isUsageDue) return true;
    return [...this.#readers].some(({ rights }) => rights === null);
  }

  async #renewRights(): Promise<void> {
    const areStale = this.#areRightsStale;
    this.#areRightsStale = false;
    const asked = [...this.#readers].filter(({ rights }) => areStale || rights === null);
    await Promise.all(asked.map((reader) => reader.renewRights()));
  }

  async #lookUp(touched: ReadonlyMap<Topic, ReadonlySet<string>>): Promise<readonly FeedEvent[]> {
    const found: FeedEvent[] = [];
    for (const [topic, keys] of touched) {
      found.push(...(await this.#parts.lookups[topic](this.#workspaceId, [...keys])));
    }
    return found;
  }

  #tell(events: readonly FeedEvent[]): void {
    for (const event of events) {
      const text = new FeedText(event);
      for (const reader of this.#readers) reader.tell(text);
    }
  }

  async #tellUsage(): Promise<void> {
    const isDue = this.#isUsageDue;
    this.#isUsageDue = false;
    const texts = new Map<number, FeedText>();
    for (const reader of [...this.#readers]) {
      if (reader.rights === null || !(isDue || reader.needsUsage)) continue;
      const { agent } = reader.rights;
      const text = texts.get(agent?.id ?? 0) ?? new FeedText(await this.#usage(agent));
      texts.set(agent?.id ?? 0, text);
      reader.tellUsage(text);
    }
  }

  async #usage(agent: Rights["agent"]): Promise<FeedEvent> {
    const { usage, approvalsPending } = this.#parts;
    const whose = agent?.id ?? 0;
    // Where one changes while they are counted, the count is of a map that nobody looks into any more.
    const counted = this.#pending;
    const pending = counted.get(whose) ?? (await approvalsPending(this.#workspaceId, agent));
    counted.set(whose, pending);
    const data = usage(this.#workspaceId, agent);
    const more = { scope: "approvals:write", data: { approvals_pending: pending } } as const;
    return { name: "usage", key: "", data, more };
  }
}
