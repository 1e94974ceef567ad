import type { Via } from "../base/via.ts";
import { encodeFrame, type TaskEventName, type TaskEvents } from "./frames.ts";

/** Deltas that may each have a frame of their own. Past that a frame waits until it is worth its overhead. */
const QUICK_FRAMES = 20_000;
/** UTF-16 units that a frame holds at least past `QUICK_FRAMES`, unless another event or the end comes first. */
const LEAST_TEXT = 1_024;
/** UTF-16 units above which no more is joined: JSON makes six bytes of one at most, and a frame still fits into a block. */
const JOINED_TEXT = 8_192;

/**
 * The events of one open task, encoded once and shared by all its readers. A reader holds a position, not a buffer, so
 * that a slow one costs nothing and a fast one never waits for it. What was stored the time before last is let go: who
 * has not read it yet reads it from the store. Bounded by the cap on a task's output, and because text
 * that comes in one turn of the event loop shares a frame, which then comes no later than its reader would be woken:
 * 300,000 deltas of one character took 62 MB as frames of their own; joined they take 15 MB (37 frames) when they come
 * at once, and 23 MB (20,274 frames) when each comes in its own turn.
 */
export class EventLog {
  /** The Gatehouses that the task's dispatch had passed: its calls pass them too. */
  readonly via: Via;
  readonly #frames: Uint8Array[] = [];
  /** Id of the first frame that is held; later ones count up from it. */
  #firstId: number;
  /** The last id that was let go; 0 where none was. */
  #letGoUpTo = 0;
  #closed = false;
  #savedUpTo: number;
  /** Bytes of frames that no block of the store holds yet. */
  #unsavedBytes = 0;
  #waiting = new Set<() => void>();
  #turnEnds = false;
  #text: string[] = [];
  #textLength = 0;
  #deltas = 0;

  constructor(firstId: number, via: Via = []) {
    this.via = via;
    this.#firstId = firstId;
    this.#savedUpTo = firstId - 1;
  }

  /** The last id that a block of the store holds. */
  get savedUpTo(): number {
    return this.#savedUpTo;
  }

  get unsavedBytes(): number {
    return this.#unsavedBytes;
  }

  /** Those who read as fast as it comes find what was stored just now in memory still. */
  saved(lastId: number): void {
    this.#letGo(this.#savedUpTo);
    this.#savedUpTo = lastId;
    this.#unsavedBytes = this.after(lastId).reduce((bytes, frame) => bytes + frame.length, 0);
  }

  /** The last id that the store alone has; 0 where there is none. */
  get letGoUpTo(): number {
    return this.#letGoUpTo;
  }

  /** Lets go of all that is stored: nothing comes for a while. */
  rest(): void {
    this.#letGo(this.#savedUpTo);
  }

  #letGo(upTo: number): void {
    const frames = upTo + 1 - this.#firstId;
    if (frames <= 0) return;
    this.#frames.splice(0, frames);
    this.#firstId = upTo + 1;
    this.#letGoUpTo = upTo;
  }

  /** The id of the next frame; text that is being joined has none yet. */
  get nextId(): number {
    return this.#firstId + this.#frames.length;
  }

  get closed(): boolean {
    return this.#closed;
  }

  publish<Name extends TaskEventName>(name: Name, data: TaskEvents[Name]): void {
    if (this.#closed) throw new Error("the task's events have ended");
    this.flush();
    this.#push(encodeFrame(this.nextId, name, data));
    this.#endTurnSoon();
  }

  /** Publishes text as `output.delta`, joined with what comes in the same turn of the event loop. */
  publishText(text: string): void {
    if (this.#closed) throw new Error("the task's events have ended");
    if (this.#textLength + text.length > JOINED_TEXT) this.flush();
    this.#text.push(text);
    this.#textLength += text.length;
    if (this.#deltas < QUICK_FRAMES || this.#textLength >= LEAST_TEXT) this.#endTurnSoon();
  }

  /** Makes a frame of the text so far, for whoever is to have all that has come. */
  flush(): void {
    if (this.#textLength === 0) return;
    const text = this.#text.join("");
    this.#text = [];
    this.#textLength = 0;
    this.#deltas += 1;
    this.#push(encodeFrame(this.nextId, "output.delta", { text }));
  }

  #push(frame: Uint8Array): void {
    this.#frames.push(frame);
    this.#unsavedBytes += frame.length;
  }

  /**
   * Adds the last frame, encoded before so that it could be stored first, and ends the log. MUST follow a `flush` when
   * there is such a frame, as its id does.
   */
  close(last: Uint8Array | null): void {
    this.flush();
    if (last) this.#frames.push(last);
    this.#closed = true;
    this.#wake();
  }

  /** Frames with ids above `after`, as far as they have come and are held. */
  after(after: number): readonly Uint8Array[] {
    const from = Math.max(0, after + 1 - this.#firstId);
    return from >= this.#frames.length ? [] : this.#frames.slice(from);
  }

  /** Calls `wake` once, when there is more than before or the log has ended; the returned function takes that back. */
  onChange(wake: () => void): () => void {
    this.#waiting.add(wake);
    return () => this.#waiting.delete(wake);
  }

  /** What a model sent in one go is one frame, and reaches each reader in one go. */
  #endTurnSoon(): void {
    if (this.#turnEnds || (this.#waiting.size === 0 && this.#textLength === 0)) return;
    this.#turnEnds = true;
    setImmediate(() => {
      this.#turnEnds = false;
      this.flush();
      this.#wake();
    });
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = new Set();
    for (const wake of waiting) wake();
  }
}
