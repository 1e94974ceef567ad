import type { Db, Tx } from "../../../store/db.ts";
import { encodeNamed } from "../../../tasks/events/frames.ts";
import type { EventLog } from "../../../tasks/events/log.ts";
import { nextEvents, RESPONSE_EVENTS, saveEvents } from "../../../tasks/events/store.ts";
import { field, isMembers, type Members, parsedOrNothing } from "../../json.ts";
import { eventsIn, readEvent } from "../../pass/events.ts";
import { inBackground } from "./forms.ts";

/** Bytes of events that are kept in memory before they are stored. */
const UNSAVED_BYTES = 32 * 1024;
/**
 * More ids than events can be sent before they are stored, since each takes at least 30 bytes. After a crash, new
 * events start this far above the stored ones, so no id is sent twice.
 */
const MOST_UNSAVED = 4_096;
/** The first event is derived from the request, and the last ones from the response as it is read. */
const DERIVED: ReadonlySet<string> = new Set([
  ...["response.created", "response.queued", "response.completed", "response.incomplete", "response.failed"],
]);
const NAME = /^[\w.-]{1,100}$/;
const ITEM_ADDED = "response.output_item.added";
const ITEM_DONE = "response.output_item.done";

interface JournalSubject {
  readonly workspaceId: number;
  readonly id: string;
  readonly createdAt: number;
  /** The parsed request. */
  readonly request: unknown;
}

/** Publishes the events of a response in the background under its own id and numbers, and stores them. */
export class ResponseJournal {
  readonly #db: Db;
  readonly #subject: JournalSubject;
  readonly #log: EventLog;
  readonly #earlier: EarlierItems;

  constructor(db: Db, subject: JournalSubject, log: EventLog, earlier: EarlierItems) {
    this.#db = db;
    this.#subject = subject;
    this.#log = log;
    this.#earlier = earlier;
  }

  /**
   * Ends the items that an earlier attempt has left unfinished: clients refuse to complete a response with such items.
   * The items of this attempt come after them, so that nobody mixes them up.
   */
  begin(): void {
    for (const [index, item] of this.#earlier.unfinished) {
      const event = { output_index: index, item: { ...item, status: "incomplete" } };
      this.#log.publishFrame((id) =>
        encodeNamed(id, ITEM_DONE, { type: ITEM_DONE, sequence_number: id - 1, ...event }),
      );
    }
  }

  /** @throws StoreUnavailable if many events cannot be stored */
  async add(event: Members): Promise<void> {
    const { type } = event;
    if (typeof type !== "string" || DERIVED.has(type)) return;
    const name = NAME.test(type) ? type : "message";
    this.#log.publishFrame((id) => encodeNamed(id, name, this.#own(event, id)));
    if (this.#log.unsavedBytes >= UNSAVED_BYTES) await this.#db.tx((tx) => this.save(tx), { single: true });
  }

  /** Stores the events so far. */
  save(tx: Tx): Promise<void> {
    return saveLog(tx, this.#subject, this.#log);
  }

  #own(event: Members, eventId: number): Members {
    const { id, request, createdAt } = this.#subject;
    const { response, output_index: index } = event;
    return {
      ...event,
      sequence_number: eventId - 1,
      ...(typeof index === "number" ? { output_index: index + this.#earlier.count } : {}),
      ...(typeof response === "object" && response !== null
        ? { response: inBackground(response as Members, request, { id, createdAt }) }
        : {}),
    };
  }
}

/** Stores the events of a response that are not stored yet. */
export async function saveLog(
  tx: Tx,
  { workspaceId, id }: Pick<JournalSubject, "workspaceId" | "id">,
  log: EventLog,
): Promise<void> {
  const from = log.savedUpTo;
  const to = log.nextId - 1;
  if (to <= from) return;
  await saveEvents(tx, workspaceId, id, from + 1, log.after(from), RESPONSE_EVENTS);
  tx.onCommit(() => log.saved(to));
}

/** The id of a response's last stored event; 1, the derived event, if none is stored. */
export async function lastStoredEvent(db: Db, workspaceId: number, id: string): Promise<number> {
  const row = await db.get<{ last: number | null }>(
    "SELECT MAX(last_id) AS last FROM response_events WHERE workspace_id = $1 AND response_id = $2",
    [workspaceId, id],
  );
  return row?.last ?? 1;
}

/** The id of the first event of another attempt, in another process. */
export async function nextAttemptsEvent(db: Db, workspaceId: number, id: string): Promise<number> {
  return (await lastStoredEvent(db, workspaceId, id)) + MOST_UNSAVED + 1;
}

/** The output items of earlier attempts, as their stored events have them. */
export interface EarlierItems {
  readonly count: number;
  /** Those that have not ended, by their `output_index`. */
  readonly unfinished: ReadonlyMap<number, Members>;
}

export async function earlierItems(db: Db, workspaceId: number, id: string): Promise<EarlierItems> {
  const unfinished = new Map<number, Members>();
  let count = 0;
  for (let after = 0; ; ) {
    const block = await nextEvents(db, workspaceId, id, after, RESPONSE_EVENTS);
    if (!block) return { count, unfinished };
    for (const event of eventsIn(Buffer.from(block.frames))) {
      const { name, data } = readEvent(event);
      if (name !== ITEM_ADDED && name !== ITEM_DONE) continue;
      const value = parsedOrNothing(data);
      const item = field(value, "item");
      const index = Number(field(value, "output_index"));
      if (name === ITEM_ADDED) count += 1;
      if (name === ITEM_ADDED && isMembers(item)) unfinished.set(index, item);
      else unfinished.delete(index);
    }
    after = block.lastId;
  }
}
