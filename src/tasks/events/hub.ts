import type { Via } from "../../base/via.ts";
import type { Db } from "../../store/db.ts";
import { EventReading } from "./event-reading.ts";
import { BLOCK_BYTES } from "./frames.ts";
import { EventLog } from "./log.ts";
import { type EventTable, TASK_EVENTS } from "./store.ts";
import { type EventMemory, StoredEvents, UNLIMITED } from "./stored-events.ts";

/** A reader of a task's events: bytes to pass on unchanged. */
export interface EventReader {
  /**
   * The next bytes, once there are any: at most 64 KiB, which may end in the middle of an event. Null after `task.finished`.
   * @throws Error if texts were erased, or memory was needed for others, in the middle of an event
   */
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
  readonly #readings = new Map<string, Set<EventReading>>();

  constructor(db: Db, table: EventTable = TASK_EVENTS) {
    this.#db = db;
    this.#table = table;
  }

  /**
   * Returns the log of an unfinished task, created for its first reader or at its start. `firstId` is 2 for a new
   * task: 1 is `task.created`.
   * @param via the Gatehouse instances that its dispatch passed through; unknown after a restart
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
   * Forgets a log that has ended, since its events are in the store. Its current readers keep it until they are done,
   * unless it is long: clients that stopped reading would exhaust memory.
   */
  close(taskId: string): void {
    const log = this.#logs.get(taskId);
    this.#logs.delete(taskId);
    if (!log || log.heldBytes <= BLOCK_BYTES) return;
    for (const reading of this.#readings.get(taskId) ?? []) reading.leaveLog();
  }

  /**
   * Makes all readers of a task continue from the store, because the frames in memory contain erased texts. The task
   * MUST have finished.
   */
  erased(taskId: string): void {
    for (const reading of this.#readings.get(taskId) ?? []) reading.erased();
  }

  /**
   * Reads a task's events after the id `after`: first those stored, then new ones. `task.created`, always the first,
   * is derived from the task itself.
   */
  read(workspaceId: number, taskId: string, after: number, memory: EventMemory = UNLIMITED): EventReader {
    return new EventReading({
      ...{ taskId, after },
      log: this.#logs.get(taskId),
      stored: new StoredEvents(this.#db, workspaceId, taskId, this.#table, memory),
      begun: (reading) => {
        const readings = this.#readings.get(taskId) ?? new Set();
        readings.add(reading);
        this.#readings.set(taskId, readings);
      },
      over: (reading) => {
        const readings = this.#readings.get(taskId);
        readings?.delete(reading);
        if (readings?.size === 0) this.#readings.delete(taskId);
      },
    });
  }
}
