import { type Clock, every } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { FeedEvent, WorkspaceUsage } from "./events.ts";
import { type FeedReader, FeedText } from "./reader.ts";
import type { FeedRights } from "./rights.ts";

/** How long changes are collected, so that frequent changes to the same object are reported once. */
const GATHER_MS = 100;
/** The shortest time between two reports of usage and of the ledger's size. */
const TICK_MS = 1_000;
/** Maximum number of collected changes. Beyond that, every reader is told to read everything again. */
const GATHERED_LIMIT = 2_000;
/** Pause after the store could not be read. */
const RETRY_MS = 1_000;

/** Objects whose current state is read when a change is reported, so only committed state is reported. */
export const TOPICS = ["task", "approval", "agent", "connector", "workspace"] as const;
export type Topic = (typeof TOPICS)[number];

/** Reads the events for objects by key, in this order; missing objects are left out. */
export type FeedLookup = (
  workspaceId: number,
  keys: readonly string[],
) => readonly FeedEvent[] | Promise<readonly FeedEvent[]>;

type CurrentUsage = Omit<WorkspaceUsage, "approvals_pending">;

export interface ChannelParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly lookups: Readonly<Record<Topic, FeedLookup>>;
  /** Current usage of a workspace or of one of its agents, on all nodes. */
  usage(workspaceId: number, agent: FeedRights["agent"]): CurrentUsage | Promise<CurrentUsage>;
  /** Number of pending approvals of a workspace or of one of its agents. */
  approvalsPending(workspaceId: number, agent: FeedRights["agent"]): Promise<number>;
}

/**
 * Changes in one workspace while anyone listens: collected, read once for all readers, and reported to each as its
 * rights permit.
 */
export class FeedChannel {
  readonly #parts: ChannelParts;
  readonly #workspaceId: number;
  readonly #readers = new Set<FeedReader>();
  #events: FeedEvent[] = [];
  #touched = new Map<Topic, Set<string>>();
  #gathered = 0;
  /** Whether there were too many changes, or reading them failed. */
  #isOver = false;
  /** Whether some reader's rights may have changed. */
  #areRightsStale = false;
  #isUsageDue = false;
  /** By agent id; 0 for all agents. Replaced by an empty map, to be counted again, when an approval changes. */
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

  /** Reports nothing from now on. */
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

  /** Sizes may be reported out of order. */
  grown(size: number): void {
    if (size > this.#ledgerSize) this.#ledgerSize = size;
  }

  /** Makes all readers read everything again, because changes may have been missed. */
  reset(): void {
    this.#pending = new Map();
    this.#isOver = true;
    this.#areRightsStale = true;
    this.#forget();
    this.#flushSoon();
  }

  /** Whether another change can be collected. */
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
    // Tokens, sessions and rotated secrets also expire without an announcement.
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
      // First, so that nothing is reported after a reader's rights have ended.
      await this.#renewRights();
      if (isOver) for (const reader of this.#readers) reader.reset();
      else this.#tell([...events, ...(await this.#lookUp(touched))]);
      await this.#tellUsage();
    } catch (error) {
      this.#parts.log.warn("changes could not be sent to event streams", {
        workspace_id: this.#workspaceId,
        error,
      });
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

  async #usage(agent: FeedRights["agent"]): Promise<FeedEvent> {
    const { usage, approvalsPending } = this.#parts;
    const whose = agent?.id ?? 0;
    // If an approval changes during the count, the result goes to the discarded map.
    const counted = this.#pending;
    const pending = counted.get(whose) ?? (await approvalsPending(this.#workspaceId, agent));
    counted.set(whose, pending);
    const data = await usage(this.#workspaceId, agent);
    const more = { scope: "approvals:write", data: { approvals_pending: pending } } as const;
    return { name: "usage", key: "", data, more };
  }
}
