import { encodeFrame, type TaskEventName, type TaskEvents } from "./frames.ts";

/**
 * The events of one open task, encoded once and shared by all its readers. A reader holds a position, not a buffer, so
 * that a slow one costs nothing and a fast one never waits for it. Bounded by the cap on a task's output.
 */
export class EventLog {
  readonly #frames: Uint8Array[] = [];
  /** Id of the first frame; later ones count up from it. */
  readonly #firstId: number;
  #closed = false;
  #savedUpTo: number;
  #waiting = new Set<() => void>();
  #waking = false;

  constructor(firstId: number) {
    this.#firstId = firstId;
    this.#savedUpTo = firstId - 1;
  }

  /** The last id that a block of the store holds. */
  get savedUpTo(): number {
    return this.#savedUpTo;
  }

  saved(lastId: number): void {
    this.#savedUpTo = lastId;
  }

  get nextId(): number {
    return this.#firstId + this.#frames.length;
  }

  get closed(): boolean {
    return this.#closed;
  }

  publish<Name extends TaskEventName>(name: Name, data: TaskEvents[Name]): void {
    if (this.#closed) throw new Error("the task's events have ended");
    this.#frames.push(encodeFrame(this.nextId, name, data));
    this.#wakeSoon();
  }

  /** Adds the last frame, encoded before so that it could be stored first, and ends the log. */
  close(last: Uint8Array | null): void {
    if (last) this.#frames.push(last);
    this.#closed = true;
    this.#wake();
  }

  /** Frames with ids above `after`, as far as they have come. */
  after(after: number): readonly Uint8Array[] {
    const from = Math.max(0, after + 1 - this.#firstId);
    return from >= this.#frames.length ? [] : this.#frames.slice(from);
  }

  /** Calls `wake` once, when there is more than before or the log has ended; the returned function takes that back. */
  onChange(wake: () => void): () => void {
    this.#waiting.add(wake);
    return () => this.#waiting.delete(wake);
  }

  /** At the end of the event loop's turn: what a model sent in one go reaches each reader in one go. */
  #wakeSoon(): void {
    if (this.#waking || this.#waiting.size === 0) return;
    this.#waking = true;
    setImmediate(() => this.#wake());
  }

  #wake(): void {
    this.#waking = false;
    const waiting = this.#waiting;
    this.#waiting = new Set();
    for (const wake of waiting) wake();
  }
}
