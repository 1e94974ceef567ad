import type { Clock } from "../../../base/clock.ts";
import type { Log } from "../../../base/log.ts";
import type { BusMessage } from "../../../nodes/bus.ts";
import type { Nodes } from "../../../nodes/nodes.ts";
import type { Db, Tx } from "../../../store/db.ts";
import type { EventRelay, EventsOwner, RelayedLogs, RemoteEvents } from "../relay.ts";
import { type EventTable, TASK_EVENTS } from "../store.ts";
import { EarlyStoring } from "./early-storing.ts";
import { Following } from "./following.ts";
import { lastEvent, setEventCeiling } from "./rows.ts";

/** Ids in one message: they are at most 32 bytes long. */
const IDS_PER_MESSAGE = 100;

export interface SharedEventsParts {
  readonly db: Db;
  readonly nodes: Pick<Nodes, "bus" | "id">;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * The events of nodes that share a store. A reader reads the store, and calls the node that publishes the events, which
 * then stores them every 50 ms and tells how far they are stored (`*.follow`, `*.stored`). Whoever takes a task over
 * announces it, so the readers call again (`*.opened`).
 */
export class SharedEvents implements EventRelay {
  readonly #parts: SharedEventsParts;
  readonly #logs: RelayedLogs;
  readonly #topic: "task" | "response";
  readonly #storing: EarlyStoring;
  readonly #following: Following;
  /** Ids that are about to be announced. */
  #opened: string[] = [];

  constructor(parts: SharedEventsParts, logs: RelayedLogs, table: EventTable) {
    this.#parts = parts;
    this.#logs = logs;
    this.#topic = table === TASK_EVENTS ? "task" : "response";
    const own = { ...parts, table, logs };
    this.#storing = new EarlyStoring({
      ...own,
      told: (owner, upTo, mayBeOver) => this.#send("stored", { ...nameOf(owner), upTo, mayBeOver }),
    });
    this.#following = new Following({ ...own, call: (owners) => this.#call(owners) });
    this.#listen();
  }

  follow(owner: EventsOwner): RemoteEvents {
    return this.#following.follow(owner);
  }

  opened(id: string): void {
    this.#following.opened(id, false);
    this.#opened.push(id);
    if (this.#opened.length > 1) return;
    // A start opens ten thousand in a row.
    queueMicrotask(() => {
      const opened = this.#opened;
      this.#opened = [];
      for (const ids of inMessages(opened)) this.#send("opened", { ids });
    });
  }

  erased(id: string): void {
    this.#send("erased", { id });
  }

  rest(tx: Tx, owner: EventsOwner, lastId: number): void {
    setEventCeiling(tx, owner, lastId);
  }

  async nextId(tx: Tx, owner: EventsOwner): Promise<number> {
    return (await lastEvent(tx, TASK_EVENTS, owner)) + 1;
  }

  stored(owner: EventsOwner, upTo: number): void {
    this.#send("stored", { ...nameOf(owner), upTo, mayBeOver: false });
  }

  end(): void {
    this.#storing.end();
    this.#following.end();
  }

  #send(name: string, message: BusMessage, isUrgent = false): void {
    this.#parts.nodes.bus.send(`${this.#topic}.${name}`, message, { isUrgent });
  }

  #call(owners: readonly EventsOwner[]): void {
    for (const [workspace, some] of Map.groupBy(owners, ({ workspaceId }) => workspaceId)) {
      for (const ids of inMessages(some.map(({ id }) => id))) this.#send("follow", { workspace, ids }, true);
    }
  }

  #listen(): void {
    const { bus } = this.#parts.nodes;
    const listen = (name: string, handle: (message: BusMessage) => void) =>
      bus.listen(`${this.#topic}.${name}`, handle);
    listen("follow", ({ workspace, ids }) => {
      if (typeof workspace !== "number") return;
      for (const id of idsIn(ids)) this.#storing.follow({ workspaceId: workspace, id });
    });
    listen("stored", ({ workspace, id, upTo, mayBeOver }) => {
      if (typeof workspace !== "number" || typeof id !== "string" || typeof upTo !== "number") return;
      const owner = { workspaceId: workspace, id };
      // Another node has decided about a call of a task that rests here.
      this.#logs.find(id)?.skipTo(upTo + 1);
      this.#following.stored(owner, upTo, mayBeOver === true);
    });
    listen("opened", ({ ids }) => {
      for (const id of idsIn(ids)) this.#following.opened(id, true);
    });
    listen("erased", ({ id }) => {
      if (typeof id === "string") this.#logs.erasedElsewhere(id);
    });
    bus.missed.listen(() => {
      this.#logs.mayBeErased();
      this.#following.lookAtAll();
    });
  }
}

function nameOf({ workspaceId, id }: EventsOwner) {
  return { workspace: workspaceId, id };
}

/** Ids, separated by spaces, in pieces that fit in a message. */
function inMessages(ids: readonly string[]): string[] {
  const messages: string[] = [];
  for (let at = 0; at < ids.length; at += IDS_PER_MESSAGE) {
    messages.push(ids.slice(at, at + IDS_PER_MESSAGE).join(" "));
  }
  return messages;
}

function idsIn(ids: BusMessage[string] | undefined): readonly string[] {
  return typeof ids === "string" ? ids.split(" ") : [];
}
