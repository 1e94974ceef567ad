import type { CacheReport, CacheUpdate } from "./messages.ts";

/** What a thread has not been told yet. */
interface Untold {
  readonly added: Map<number, SharedArrayBuffer>;
  readonly dropped: Set<number>;
}

/**
 * Decides which segments a group of threads caches, in memory that they share: each segment is in memory once, however
 * many threads search it. A thread reads a segment that it lacks from the store; the others then get that copy.
 *
 * Contains no buffer for longer than it takes to pass it on: what this thread refers to counts as its own memory and
 * would delay its garbage collections.
 */
export class SegmentSharing<Thread> {
  readonly #limit: number;
  /** Bytes of all cached segments. */
  #bytes = 0;
  /** Bytes of the cached segments by key, least recently used first. */
  readonly #sizes = new Map<number, number>();
  readonly #threads = new Map<Thread, Untold>();

  /** `limit`: how many bytes of segments the threads may cache together. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  join(thread: Thread): void {
    this.#threads.set(thread, { added: new Map(), dropped: new Set() });
  }

  leave(thread: Thread): void {
    this.#threads.delete(thread);
    if (this.#threads.size > 0) return;
    this.#sizes.clear();
    this.#bytes = 0;
  }

  /** Takes note of what a thread used and read in a job. */
  report({ used, read }: CacheReport): void {
    for (const id of used) this.#touch(id);
    for (const { id, buffer } of read) this.#add(id, buffer);
    for (const id of this.#sizes.keys()) {
      if (this.#bytes <= this.#limit) break;
      this.#drop(id);
    }
  }

  /** The changes that a thread MUST make before its next job; null if there are none. */
  take(thread: Thread): CacheUpdate | null {
    const untold = this.#threads.get(thread);
    if (!untold || untold.added.size + untold.dropped.size === 0) return null;
    const added = [...untold.added].map(([id, buffer]) => ({ id, buffer }));
    const dropped = [...untold.dropped];
    untold.added.clear();
    untold.dropped.clear();
    return { dropped, added };
  }

  #touch(id: number): void {
    const bytes = this.#sizes.get(id);
    if (bytes === undefined) return;
    this.#sizes.delete(id);
    this.#sizes.set(id, bytes);
  }

  /**
   * The latest copy replaces all others, that of the thread itself included: if two threads read a segment at the same
   * time, each might otherwise end up with the other's copy.
   */
  #add(id: number, buffer: SharedArrayBuffer): void {
    this.#bytes += buffer.byteLength - (this.#sizes.get(id) ?? 0);
    this.#sizes.delete(id);
    this.#sizes.set(id, buffer.byteLength);
    if (this.#threads.size < 2) return;
    for (const { added } of this.#threads.values()) added.set(id, buffer);
  }

  #drop(id: number): void {
    this.#bytes -= this.#sizes.get(id) ?? 0;
    this.#sizes.delete(id);
    for (const { added, dropped } of this.#threads.values()) {
      added.delete(id);
      dropped.add(id);
    }
  }
}
