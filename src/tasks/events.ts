import type { Via } from "../base/via.ts";
import type { Db } from "../store/db.ts";
import { EventLog } from "./event-log.ts";
import { nextEvents } from "./event-store.ts";
import { encodeFrame, framesAfter } from "./frames.ts";

/** What a reader of a task's events gets: bytes to pass on as they are. */
export interface EventReader {
  /** The next frames, or null after `task.finished`. Waits until there are some. */
  next(): Promise<readonly Uint8Array[] | null>;
  /** Ends the reading, also one that waits: `next` answers null from now on. */
  close(): void;
}

/** The events of all tasks: of open ones in memory, of earlier steps and finished ones in the store. */
export class TaskEventHub {
  readonly #db: Db;
  readonly #logs = new Map<string, EventLog>();
  /** Of readers that are on a log: lets them go on from the store. As many as there are open streams. */
  readonly #readers = new Map<string, Set<() => void>>();

  constructor(db: Db) {
    this.#db = db;
  }

  /**
   * The log of a task that has not finished; made at its first reader or at its start. `firstId` is 2: 1 is `task.created`.
   * @param via the Gatehouses that its dispatch had passed; after a restart nobody knows them any more
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

  /** Forgets a log that has ended: its events are in the store. Readers on it keep it until they are done. */
  close(taskId: string): void {
    this.#logs.delete(taskId);
  }

  /**
   * Lets all who read a task's events go on with what the store has of them: its log's frames say what was erased. The task
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
   * Reads a task's events after the id `after`. First what is stored, then what is still coming; `task.created`, always
   * the first, follows from the task itself.
   */
  read(workspaceId: number, taskId: string, after: number): EventReader {
    const db = this.#db;
    // Taken now, so that a task that finishes meanwhile is not lost between its log and the store. A task without a log
    // has finished, and its events are all stored.
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
      const block = await nextEvents(db, workspaceId, taskId, position);
      if (!block) return undefined;
      const frames = framesAfter(block.frames, position);
      position = block.lastId;
      return [frames];
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
          // It was erased.
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
        // Not before it is read: a reader that nobody takes up is not closed either.
        if (log) this.#reads(taskId, reread);
        const frames = await read();
        if (frames === null) close();
        return frames;
      },
      close,
    };
  }
}
