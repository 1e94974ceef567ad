import { Problem } from "../base/errors.ts";
import { type ChannelParts, FeedChannel, type Topic } from "./channel.ts";
import type { FeedEvent } from "./events.ts";
import { FeedReader } from "./reader.ts";
import type { FeedReaders, FeedRelay } from "./relay.ts";
import type { FeedRights } from "./rights.ts";

/**
 * Distributes changes to the listeners of each workspace. Callers MUST report only committed changes. Without listeners,
 * a report costs one map lookup. If other nodes share the store, a relay passes the reports on to their readers.
 */
export class FeedHub {
  readonly #parts: ChannelParts;
  /** The readers of this node, for changes that every node learns by itself. */
  readonly here: FeedReaders = this.#readers();
  readonly #relay: FeedRelay | null;
  readonly #channels = new Map<number, FeedChannel>();
  #hasEnded = false;

  /** @param openRelay given if other nodes share the store */
  constructor(parts: ChannelParts, openRelay?: (readers: FeedReaders) => FeedRelay) {
    this.#parts = parts;
    this.#relay = openRelay?.(this.here) ?? null;
  }

  /** Reports an event unchanged. */
  publish(workspaceId: number, event: FeedEvent): void {
    this.#channels.get(workspaceId)?.publish(event);
    this.#relay?.published(workspaceId, event);
  }

  /** Reports that an object has changed. Its state is read later. */
  touch(workspaceId: number, topic: Topic, key: string): void {
    this.#channels.get(workspaceId)?.touch(topic, key);
    this.#relay?.touched(workspaceId, topic, key);
  }

  /** Reports the size of the workspace's ledger. */
  grown(workspaceId: number, size: number): void {
    this.#channels.get(workspaceId)?.grown(size);
    this.#relay?.grown(workspaceId, size);
  }

  /** Reports that callers' rights may have changed, in one workspace or in all. */
  rightsChanged(workspaceId?: number): void {
    if (workspaceId !== undefined) this.#channels.get(workspaceId)?.rightsChanged();
    else for (const channel of this.#channels.values()) channel.rightsChanged();
  }

  /**
   * Listens to a workspace. `load` returns the listener's current rights and when they end, or undefined if there are
   * none. It is called whenever they may have changed.
   * @throws Problem 503 `draining`
   */
  listen(workspaceId: number, load: () => Promise<FeedRights | undefined>): FeedReader {
    if (this.#hasEnded) {
      throw new Problem("draining", "The server is shutting down.", { headers: { "Retry-After": "5" } });
    }
    const channel = this.#channels.get(workspaceId) ?? new FeedChannel(this.#parts, workspaceId);
    this.#channels.set(workspaceId, channel);
    const now = () => this.#parts.clock.now();
    const reader: FeedReader = new FeedReader(load, now, () => {
      channel.remove(reader);
      if (!channel.isEmpty || this.#channels.get(workspaceId) !== channel) return;
      this.#channels.delete(workspaceId);
      channel.end();
    });
    channel.add(reader);
    return reader;
  }

  /** Passes the last changes on to other nodes, before this one leaves them. */
  flush(): void {
    this.#relay?.flush();
  }

  /** Ends all streams and refuses new ones. */
  end(): void {
    this.#hasEnded = true;
    for (const channel of [...this.#channels.values()]) channel.end();
  }

  #readers(): FeedReaders {
    return {
      published: (workspaceId, event) => this.#channels.get(workspaceId)?.publish(event),
      touched: (workspaceId, topic, key) => this.#channels.get(workspaceId)?.touch(topic, key),
      grown: (workspaceId, size) => this.#channels.get(workspaceId)?.grown(size),
      reset: (workspaceId) => {
        if (workspaceId !== undefined) this.#channels.get(workspaceId)?.reset();
        else for (const channel of this.#channels.values()) channel.reset();
      },
    };
  }
}
