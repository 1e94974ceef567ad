import { BLOCK_BYTES, encodeFrame } from "./frames.ts";
import type { EventReader } from "./hub.ts";
import type { EventLog } from "./log.ts";
import type { RemoteEvents } from "./relay.ts";
import type { StoredEvents } from "./stored-events.ts";

export interface EventReadingParts {
  readonly taskId: string;
  /** Read the events above this id. */
  readonly after: number;
  /**
   * Undefined if the task has finished, or another node runs it. Taken when reading begins, so that the events of a task that finishes in
   * the meantime are not missed between its log and the store.
   */
  readonly log: EventLog | undefined;
  readonly stored: StoredEvents;
  /** Reads what other nodes publish. Undefined if there are none: then reading ends when the log ends. */
  readonly remote?: RemoteEvents | undefined;
  /** Called when reading has begun, and when it is over. */
  readonly begun: (reading: EventReading) => void;
  readonly over: (reading: EventReading) => void;
}

/** The id of `task.created`. */
const CREATED = 1;

/** Reads a task's events: first those stored, then new ones. It keeps a position, and nothing of a long event. */
export class EventReading implements EventReader {
  readonly #parts: EventReadingParts;
  #log: EventLog | undefined;
  /** The last event that was read entirely. */
  #position: number;
  /** How many bytes of the next event have been handed out from the log. */
  #given = 0;
  #readsStore: boolean;
  #hasBegun = false;
  #isErased = false;
  #erasures = 0;
  #isClosed = false;
  #stopWaiting = () => {};

  constructor(parts: EventReadingParts) {
    this.#parts = parts;
    this.#log = parts.log;
    this.#position = parts.after;
    const next = Math.max(this.#position, CREATED) + 1;
    this.#readsStore = parts.log?.idAfter(next - 1) !== next;
  }

  async next(): Promise<readonly Uint8Array[] | null> {
    if (this.#isClosed) return null;
    // Only now: a read that never begins is never closed either.
    if (!this.#hasBegun) {
      this.#parts.begun(this);
      // Its texts may have been erased since, which only readings that have begun are told.
      if (this.#log?.closed) this.leaveLog();
    }
    this.#hasBegun = true;
    const part = await this.#read();
    if (part === null || this.#isClosed) this.close();
    return this.#isClosed ? null : part;
  }

  close(): void {
    this.#isClosed = true;
    this.#parts.stored.drop();
    this.#stopWaiting();
    this.#parts.remote?.close();
    this.#parts.over(this);
  }

  /** Whether the texts that it reads may be erased: those of an open log are still being made. */
  get mayBeErased(): boolean {
    return this.#log === undefined || this.#log.closed;
  }

  /** Continues from the store, which contains all events by then. */
  leaveLog(): void {
    this.#log = undefined;
    this.#readsStore = true;
  }

  /** Continues from the store, because events in memory contain erased texts. The task MUST have finished. */
  erased(): void {
    this.#erasures += 1;
    this.#isErased ||= this.#given > 0 || this.#parts.stored.hasBegun;
    this.#parts.stored.drop();
    this.leaveLog();
  }

  async #read(): Promise<readonly Uint8Array[] | null> {
    if (this.#position < CREATED) {
      this.#position = CREATED;
      return [encodeFrame(CREATED, "task.created", { id: this.#parts.taskId, status: "queued" })];
    }
    let storedUpTo = 0;
    while (!this.#isClosed) {
      if (this.#readsStore || this.#position < (this.#log?.letGoUpTo ?? 0)) {
        const upTo = this.#log?.letGoUpTo ?? storedUpTo;
        const part = await this.#fromStore();
        if (part) return part;
        this.#readsStore = false;
        // Events that are missing were erased.
        this.#position = Math.max(this.#position, upTo);
        continue;
      }
      const log = this.#log;
      const part = log && this.#fromLog(log);
      if (part) return part;
      if (log && !log.closed) {
        await this.#changed(log);
        continue;
      }
      if (!this.#parts.remote || log?.isOver) return null;
      const next = await this.#parts.remote.next(this.#position);
      if (next === null) return null;
      // An earlier node may have stored more before this one took the task over.
      this.#readsStore = true;
      this.#log = typeof next === "number" ? undefined : next;
      if (typeof next === "number") storedUpTo = next;
    }
    return null;
  }

  async #fromStore(): Promise<readonly Uint8Array[] | undefined> {
    const erasures = this.#erasures;
    const next = this.#isErased ? undefined : await this.#parts.stored.next(this.#position, this.#given);
    // The rest of an event would not match the part that the reader already has. A new reader gets what is left.
    if (this.#isErased) throw new Error("an event was erased while it was read");
    if (erasures !== this.#erasures) {
      this.#parts.stored.drop();
      return this.#fromStore();
    }
    if (!next) return undefined;
    this.#given = 0;
    this.#position = next.upTo;
    return [next.piece];
  }

  /** At most as many bytes as a block has, so that a client that stops reading holds no more. */
  #fromLog(log: EventLog): readonly Uint8Array[] | undefined {
    const frames = log.after(this.#position);
    const [first] = frames;
    if (!first) return undefined;
    if (first.length > BLOCK_BYTES) {
      const piece = first.slice(this.#given, this.#given + BLOCK_BYTES);
      this.#given += piece.length;
      if (this.#given === first.length) this.#goTo(log.idAfter(this.#position));
      return [piece];
    }
    let count = 0;
    for (let bytes = first.length; bytes <= BLOCK_BYTES; bytes += frames[count]?.length ?? BLOCK_BYTES + 1)
      count++;
    this.#goTo(log.idAfter(this.#position) + count - 1);
    return frames.slice(0, count);
  }

  #goTo(position: number): void {
    this.#position = position;
    this.#given = 0;
  }

  #changed(log: EventLog): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const forget = log.onChange(resolve);
    this.#stopWaiting = () => {
      forget();
      resolve();
    };
    return promise;
  }
}
