import type { Via } from "../../base/via.ts";
import type { Db, Tx } from "../../store/db.ts";
import { EventReading } from "./event-reading.ts";
import { BLOCK_BYTES } from "./frames.ts";
import { EventLog } from "./log.ts";
import type { EventRelay, EventsOwner, RelayedLogs } from "./relay.ts";
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

/** The id of the first event that a new task publishes: 1 is `task.created`. */
const FIRST_EVENT = 2;

/**
 * The events of all tasks. Events of open tasks are in memory; those of earlier steps and of finished tasks are in
 * the store. Background responses have a separate hub and table. If other nodes share the store, a relay provides the
 * events of their tasks.
 */
export class EventHub implements RelayedLogs {
  readonly #db: Db;
  readonly #table: EventTable;
  readonly #relay: EventRelay | null;
  readonly #logs = new Map<string, EventLog>();
  readonly #readings = new Map<string, Set<EventReading>>();

  /** @param openRelay given if other nodes share the store */
  constructor(db: Db, table: EventTable = TASK_EVENTS, openRelay?: (logs: RelayedLogs) => EventRelay) {
    this.#db = db;
    this.#table = table;
    this.#relay = openRelay?.(this) ?? null;
  }

  /** The other nodes; null if there are none. */
  get relay(): EventRelay | null {
    return this.#relay;
  }

  /**
   * Returns the log of an unfinished task, created for its first reader or at its start. `firstId` is 2 for a new
   * task: 1 is `task.created`.
   * @param via the Gatehouse instances that its dispatch passed through; unknown after a restart
   */
  open(taskId: string, firstId: number, via: Via = []): EventLog {
    const known = this.#logs.get(taskId);
    // A log is closed and still here if its task was left to another node, which has given it back.
    if (known && !(known.closed && this.#relay)) return known;
    const log = new EventLog(firstId, via);
    this.#logs.set(taskId, log);
    if (firstId > FIRST_EVENT) this.#relay?.opened(taskId);
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
    this.erasedElsewhere(taskId);
    this.#relay?.erased(taskId);
  }

  erasedElsewhere(taskId: string): void {
    for (const reading of this.#readings.get(taskId) ?? []) reading.erased();
  }

  mayBeErased(): void {
    for (const readings of this.#readings.values()) {
      for (const reading of readings) if (reading.mayBeErased) reading.erased();
    }
  }

  /** Notes that a task rests after its event `lastId`, and that all its events are stored. */
  rest(tx: Tx, owner: EventsOwner, lastId: number): void {
    this.#relay?.rest(tx, owner, lastId);
  }

  /** Ends all reads of events that other nodes publish, because this node stops. */
  end(): void {
    this.#relay?.end();
  }

  /**
   * Reads a task's events after the id `after`: first those stored, then new ones. `task.created`, always the first,
   * is derived from the task itself.
   */
  read(workspaceId: number, taskId: string, after: number, memory: EventMemory = UNLIMITED): EventReader {
    const log = this.#logs.get(taskId);
    return new EventReading({
      ...{ taskId, after },
      log: this.#relay && log?.closed ? undefined : log,
      remote: this.#relay?.follow({ workspaceId, id: taskId }),
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
