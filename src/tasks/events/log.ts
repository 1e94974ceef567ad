import type { Via } from "../../base/via.ts";
import { encodeFrame, type TaskEventName, type TaskEvents } from "./frames.ts";

/**
 * The number of text frames that are published at the end of each turn. After that, text waits until a frame is worth
 * its overhead.
 */
const QUICK_FRAMES = 20_000;
/**
 * The minimum number of UTF-16 code units in a text frame after `QUICK_FRAMES`, unless another event or the end comes
 * first.
 */
const LEAST_TEXT = 1_024;
/**
 * The maximum number of UTF-16 code units joined into one frame. JSON needs at most six bytes for each, so a frame
 * still fits in a block.
 */
const JOINED_TEXT = 8_192;

/**
 * The events of one open task or response, encoded once and shared by all its readers. A reader holds a position
 * rather than a buffer, so a slow reader costs nothing and a fast one never waits for it. Frames are released one
 * save after they are stored; readers that have not read them yet get them from the store. Memory is bounded by the
 * limit on a task's output, and because text that arrives in one turn of the event loop shares a frame. Sharing
 * delays no reader. 300,000 deltas of one character took 62 MB as separate frames. Joined, they take 15 MB (37
 * frames) if they arrive at once, and 23 MB (20,274 frames) if each arrives in its own turn.
 */
export class EventLog {
  /** The Gatehouse instances that the task's dispatch passed through. Its calls pass them on. */
  readonly via: Via;
  readonly #frames: Uint8Array[] = [];
  /** The id of the first frame held; ids of later frames follow it. */
  #firstId: number;
  /** The last released id; 0 if none. */
  #letGoUpTo = 0;
  #closed = false;
  #isOver = false;
  #savedUpTo: number;
  /** The id at which it continues once all frames are stored, if that is not the next one. */
  #continueAt = 0;
  /** Size in bytes of frames that are not stored yet. */
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

  /** Called when frames have been stored. */
  onSaved: (() => void) | null = null;

  /** The last stored id. */
  get savedUpTo(): number {
    return this.#savedUpTo;
  }

  get unsavedBytes(): number {
    return this.#unsavedBytes;
  }

  /**
   * Notes that frames up to `lastId` are stored, and releases those of the previous save. Readers that keep up still
   * find the latest in memory. Nothing changes if later frames were stored before.
   */
  saved(lastId: number): void {
    if (lastId <= this.#savedUpTo) return;
    this.#letGo(this.#savedUpTo);
    this.#savedUpTo = lastId;
    this.#unsavedBytes = this.after(lastId).reduce((bytes, frame) => bytes + frame.length, 0);
    this.onSaved?.();
    if (this.#continueAt > 0) this.skipTo(this.#continueAt);
  }

  /**
   * Continues at `nextId` once all frames are stored, because another node has stored events with the ids below it.
   * Nothing changes if it has got as far.
   */
  skipTo(nextId: number): void {
    if (this.#closed || nextId <= this.nextId) return;
    if (this.#savedUpTo < this.nextId - 1) {
      this.#continueAt = Math.max(this.#continueAt, nextId);
      return;
    }
    this.#continueAt = 0;
    this.#frames.length = 0;
    this.#firstId = nextId;
    this.#letGoUpTo = nextId - 1;
    this.#savedUpTo = nextId - 1;
    this.#wake();
  }

  /** The last id that is only in the store; 0 if none. */
  get letGoUpTo(): number {
    return this.#letGoUpTo;
  }

  /** Releases everything stored, because nothing is expected for a while. */
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

  /** The id of the next frame. Text that is still being joined has no id yet. */
  get nextId(): number {
    return this.#firstId + this.#frames.length;
  }

  /** The id of the first frame held above `after`, if there is one. */
  idAfter(after: number): number {
    return Math.max(this.#firstId, after + 1);
  }

  /** Size in bytes of all frames held. */
  get heldBytes(): number {
    return this.#frames.reduce((bytes, frame) => bytes + frame.length, 0);
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Whether it was closed with its last event, or nothing else can be read of it. */
  get isOver(): boolean {
    return this.#isOver;
  }

  publish<Name extends TaskEventName>(name: Name, data: TaskEvents[Name]): void {
    this.publishFrame((id) => encodeFrame(id, name, data));
  }

  publishFrame(encode: (id: number) => Uint8Array): void {
    if (this.#closed) throw new Error("the events have ended");
    this.flush();
    this.#push(encode(this.nextId));
    this.#endTurnSoon();
  }

  /** Publishes text as `output.delta`, joined with other text of the same turn of the event loop. */
  publishText(text: string): void {
    if (this.#closed) throw new Error("the events have ended");
    if (this.#textLength + text.length > JOINED_TEXT) this.flush();
    this.#text.push(text);
    this.#textLength += text.length;
    if (this.#deltas < QUICK_FRAMES || this.#textLength >= LEAST_TEXT) this.#endTurnSoon();
  }

  /** Turns the text received so far into a frame, for readers that must get everything that has arrived. */
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
   * Adds the last frame and ends the log. The frame was encoded earlier so that it could be stored first. If there is
   * one, `flush` MUST have been called before its id was chosen. Without one, its readers may go on on another node, unless
   * it is over.
   */
  close(last: Uint8Array | null, isOver = last !== null): void {
    this.flush();
    if (last) this.#frames.push(last);
    this.#closed = true;
    this.#isOver = isOver;
    this.#wake();
  }

  /** Frames with ids above `after` that are still held. */
  after(after: number): readonly Uint8Array[] {
    const from = Math.max(0, after + 1 - this.#firstId);
    return from >= this.#frames.length ? [] : this.#frames.slice(from);
  }

  /** Calls `wake` once, when there are new frames or the log has ended. The returned function cancels this. */
  onChange(wake: () => void): () => void {
    this.#waiting.add(wake);
    return () => this.#waiting.delete(wake);
  }

  /** Joins the text of one event-loop turn into one frame, and wakes each reader once. */
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
