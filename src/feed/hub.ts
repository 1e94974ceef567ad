import { Problem } from "../base/errors.ts";
import { Channel, type ChannelParts, type Topic } from "./channel.ts";
import type { FeedEvent } from "./events.ts";
import { FeedReader } from "./reader.ts";
import type { Rights } from "./rights.ts";

/**
 * Tells who listens to a workspace what changes in it. Told MUST be only what is committed. Where nobody listens to the
 * workspace, telling costs one look into a map.
 */
export class FeedHub {
  readonly #parts: ChannelParts;
  readonly #channels = new Map<number, Channel>();
  #hasEnded = false;

  constructor(parts: ChannelParts) {
    this.#parts = parts;
  }

  /** Tells an event as it is. */
  publish(workspaceId: number, event: FeedEvent): void {
    this.#channels.get(workspaceId)?.publish(event);
  }

  /** Tells what has become of a thing by now, as it can be looked up. */
  touch(workspaceId: number, topic: Topic, key: string): void {
    this.#channels.get(workspaceId)?.touch(topic, key);
  }

  /** Tells how long the workspace's ledger is. */
  grown(workspaceId: number, size: number): void {
    this.#channels.get(workspaceId)?.grown(size);
  }

  /** What callers may be told may be something else by now, in one workspace or in all. */
  rightsChanged(workspaceId?: number): void {
    if (workspaceId !== undefined) this.#channels.get(workspaceId)?.rightsChanged();
    else for (const channel of this.#channels.values()) channel.rightsChanged();
  }

  /**
   * Listens to a workspace. `load` answers what the listener may be told now and until when, and undefined where that is
   * nothing any more; it is asked whenever that may have changed.
   * @throws Problem 503 `draining`
   */
  listen(workspaceId: number, load: () => Promise<Rights | undefined>): FeedReader {
    if (this.#hasEnded) {
      throw new Problem("draining", "The server is shutting down.", { headers: { "Retry-After": "5" } });
    }
    const channel = this.#channels.get(workspaceId) ?? new Channel(this.#parts, workspaceId);
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

  /** Ends every stream, and takes no more. */
  end(): void {
    this.#hasEnded = true;
    for (const channel of [...this.#channels.values()]) channel.end();
  }
}
