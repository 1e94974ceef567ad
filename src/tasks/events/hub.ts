import type { Via } from "../../base/via.ts";
import type { Db } from "../../store/db.ts";
import { encodeFrame } from "./frames.ts";
import { EventLog } from "./log.ts";
import { type EventTable, TASK_EVENTS } from "./store.ts";
import { StoredEvents } from "./stored-events.ts";

/** A reader of a task's events: bytes to pass on unchanged. */
export interface EventReader {
  /** The next bytes, once there are any; null after `task.finished`. They may end in the middle of an event. */
  next(): Promise<readonly Uint8Array[] | null>;
  /** Stops reading, even during a wait: from then on, `next` returns null. */
  close(): void;
}

/**
 * The events of all tasks. Events of open tasks are in memory; those of earlier steps and of finished tasks are in
 * the store. Background responses have a separate hub and table.
 */
export class EventHub {
  readonly #db: Db;
  readonly #table: EventTable;
  readonly #logs = new Map<string, EventLog>();
  /** Functions that make a log's readers continue from the store, one for each open stream. */
  readonly #readers = new Map<string, Set<() => void>>();

  constructor(db: Db, table: EventTable = TASK_EVENTS) {
    this.#db = db;
    this.#table = table;
  }

  /**
   * Returns the log of an unfinished task, created for its first reader or at its start. `firstId` is 2 for a new
   * task: 1 is `task.created`.
   * @param via the Gatehouses that its dispatch passed through; unknown after a restart
   */
  open(taskId: string, firstId: number, via: Via = []): EventLog {
    const known = this.#logs.get(taskId);
    if (known) return known;
    const log = new EventLog(firstId, via);
    this.#logs.set(taskId, log);
    return log;
  }

  find(taskId: string): EventLog | undefined {
    return this.#logs.get(taskId);
  }

  /**
   * Forgets a log that has ended, since its events are in the store. Its current readers keep it until they are done.
   */
  close(taskId: string): void {
    this.#logs.delete(taskId);
  }

  /**
   * Makes all readers of a task continue from the store, because the frames in memory contain erased texts. The task
   * MUST have finished.
   */
  erased(taskId: string): void {
    for (const reread of this.#readers.get(taskId) ?? []) reread();
  }

  #reads(taskId: string, reread: () => void): void {
    const readers = this.#readers.get(taskId) ?? new Set();
    readers.add(reread);
    this.#readers.set(taskId, readers);
  }

  #left(taskId: string, reread: () => void): void {
    const readers = this.#readers.get(taskId);
    readers?.delete(reread);
    if (readers?.size === 0) this.#readers.delete(taskId);
  }

  /**
   * Reads a task's events after the id `after`: first those stored, then new ones. `task.created`, always the first,
   * is derived from the task itself.
   */
  read(workspaceId: number, taskId: string, after: number): EventReader {
    const storedEvents = new StoredEvents(this.#db, workspaceId, taskId, this.#table);
    // Taken now, so that the events of a task that finishes during the read are not missed between its log and the
    // store. A task without a log has finished, and all its events are stored.
    let log = this.#logs.get(taskId);
    let position = after;
    let stored = true;
    let closed = false;
    let stopWaiting = () => {};

    const changed = (from: EventLog) =>
      new Promise<void>((resolve) => {
        const forget = from.onChange(resolve);
        stopWaiting = () => {
          forget();
          resolve();
        };
      });

    const reread = () => {
      log = undefined;
      stored = true;
    };

    async function fromStore(): Promise<readonly Uint8Array[] | undefined> {
      const next = await storedEvents.next(position);
      if (!next) return undefined;
      position = next.upTo;
      return [next.piece];
    }

    async function read(): Promise<readonly Uint8Array[] | null> {
      if (position < 1) {
        position = 1;
        return [encodeFrame(1, "task.created", { id: taskId, status: "queued" })];
      }
      if (stored) {
        const frames = await fromStore();
        if (frames) return frames;
        stored = false;
      }
      while (log && !closed) {
        if (position < log.letGoUpTo) {
          const upTo = log.letGoUpTo;
          const frames = await fromStore();
          if (frames) return frames;
          // The events were erased.
          position = upTo;
          continue;
        }
        const frames = log.after(position);
        if (frames.length > 0) {
          position = log.nextId - 1;
          return frames;
        }
        if (log.closed) return null;
        await changed(log);
      }
      return null;
    }
    const close = () => {
      closed = true;
      stopWaiting();
      this.#left(taskId, reread);
    };
    return {
      next: async () => {
        if (closed) return null;
        // Registered only once it is read: a reader that is never used is never closed either.
        if (log) this.#reads(taskId, reread);
        const frames = await read();
        if (frames === null) close();
        return frames;
      },
      close,
    };
  }
}
