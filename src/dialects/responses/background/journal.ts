import type { Db, Tx } from "../../../store/db.ts";
import { mayStoreEvents } from "../../../tasks/erasure/response-events.ts";
import { encodeNamed, framesAfter } from "../../../tasks/events/frames.ts";
import type { EventLog } from "../../../tasks/events/log.ts";
import { findBlock, RESPONSE_EVENTS, readBlock, saveEvents } from "../../../tasks/events/store.ts";
import { field, isMembers, type Members, parsedOrNothing } from "../../json.ts";
import { eventsIn, readEvent } from "../../pass/events.ts";
import { inBackground } from "./response-forms.ts";

/** Size in bytes of events that are kept in memory before they are stored. */
const UNSAVED_BYTES = 32 * 1024;
/**
 * More ids than an attempt can send before they are stored, since each event takes at least 30 bytes. After a crash,
 * new events start this far above the stored ones for each earlier attempt, so no id is sent twice.
 */
const MOST_UNSAVED = 4_096;
/** The first event is derived from the request, and the last events from the response as it is read. */
const DERIVED: ReadonlySet<string> = new Set([
  ...["response.created", "response.queued", "response.completed", "response.incomplete", "response.failed"],
]);
const NAME = /^[\w.-]{1,100}$/;
const ITEM_ADDED = "response.output_item.added";
const ITEM_DONE = "response.output_item.done";

interface JournalKey {
  readonly workspaceId: number;
  readonly id: string;
}

export interface JournalSubject extends JournalKey {
  readonly createdAt: number;
  /** The parsed request, or the part of it that events repeat. */
  readonly request: unknown;
}

/** Publishes the events of a background response under its own id and numbers, and stores them. */
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
   * Ends the items that an earlier attempt left unfinished: clients refuse to complete a response with unfinished
   * items. The items of this attempt are numbered after them, so clients do not confuse the two.
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
    if (type === ITEM_ADDED) return this.#addItem(event);
    this.#log.publishFrame((id) => encodeNamed(id, name, this.#own(event, id)));
    if (this.#log.unsavedBytes >= UNSAVED_BYTES)
      await this.#db.tx(null, (tx) => this.save(tx), { single: true, turnOf: this.#subject.workspaceId });
  }

  /** Publishes the event once it is stored: after a crash, the next attempt must know every item that was seen. */
  async #addItem(event: Members): Promise<void> {
    const log = this.#log;
    const frame = encodeNamed(log.nextId, ITEM_ADDED, this.#own(event, log.nextId));
    const from = log.savedUpTo;
    const frames = [...log.after(from), frame];
    await this.#db.tx(
      null,
      async (tx) => {
        const { workspaceId, id } = this.#subject;
        await saveFrames(tx, { workspaceId, id }, from + 1, frames);
        tx.onCommit(() => {
          log.publishFrame(() => frame);
          log.saved(from + frames.length);
        });
      },
      { turnOf: this.#subject.workspaceId },
    );
  }

  /** Stores the events published so far. */
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
export async function saveLog(tx: Tx, subject: JournalKey, log: EventLog): Promise<void> {
  await saveUpTo(tx, subject, log, log.after(log.savedUpTo));
}

/** Like `saveLog`, but also stores the highest id even if no event used it: the last events come after it. */
export async function saveEnd(tx: Tx, { workspaceId, id }: JournalKey, log: EventLog): Promise<void> {
  const frames = log.after(log.savedUpTo);
  const last = log.nextId - 1;
  if (frames.length > 0) await saveUpTo(tx, { workspaceId, id }, log, frames);
  else if (last > 1 && (await mayStoreEvents(tx, workspaceId, id, last))) {
    tx.write(MARKER, [workspaceId, id, last, new Uint8Array()]);
  }
}

/** A block without events. */
const MARKER = `INSERT INTO response_events (workspace_id, response_id, first_id, last_id, frames)
  VALUES ($1, $2, $3, $3, $4) ON CONFLICT DO NOTHING`;

async function saveUpTo(
  tx: Tx,
  { workspaceId, id }: JournalKey,
  log: EventLog,
  frames: readonly Uint8Array[],
): Promise<void> {
  if (frames.length === 0) return;
  const from = log.savedUpTo;
  await saveFrames(tx, { workspaceId, id }, from + 1, frames);
  tx.onCommit(() => log.saved(from + frames.length));
}

async function saveFrames(
  tx: Tx,
  { workspaceId, id }: JournalKey,
  firstId: number,
  frames: readonly Uint8Array[],
): Promise<void> {
  const lastId = firstId + frames.length - 1;
  if (!(await mayStoreEvents(tx, workspaceId, id, lastId))) return;
  saveEvents(tx, workspaceId, id, firstId, frames, RESPONSE_EVENTS);
}

/** The id of a response's last stored event; 1, the derived event, if none is stored. */
export async function lastStoredEvent(db: Db, workspaceId: number, id: string): Promise<number> {
  const row = await db.get<{ last: number | null }>(
    "SELECT MAX(last_id) AS last FROM response_events WHERE workspace_id = $1 AND response_id = $2",
    [workspaceId, id],
  );
  return row?.last ?? 1;
}

/**
 * The id of the first event of another attempt, in another process.
 * @param attempts how many attempts were started before. Possibly none of their events were stored
 */
export async function nextAttemptsEvent(
  db: Db,
  workspaceId: number,
  id: string,
  attempts: number,
): Promise<number> {
  const unsaved = attempts * (MOST_UNSAVED + 1);
  return (await lastStoredEvent(db, workspaceId, id)) + unsaved + 1;
}

const NOTHING = new Uint8Array();

/** The output items of earlier attempts, as their stored events have them. */
export interface EarlierItems {
  readonly count: number;
  /** The items that have not ended, by their `output_index`. */
  readonly unfinished: ReadonlyMap<number, Members>;
}

export async function earlierItems(db: Db, workspaceId: number, id: string): Promise<EarlierItems> {
  const unfinished = new Map<number, Members>();
  let count = 0;
  for (let after = 0; ; ) {
    const block = await findBlock(db, workspaceId, id, after, RESPONSE_EVENTS);
    if (!block) return { count, unfinished };
    const frames = block.frames ?? (await readBlock(db, workspaceId, id, block.firstId, RESPONSE_EVENTS));
    for (const event of eventsIn(Buffer.from(framesAfter(frames ?? NOTHING, after)))) {
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
