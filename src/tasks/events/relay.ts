import type { Tx } from "../../store/db.ts";
import type { EventLog } from "./log.ts";

/** A task or a background response. */
export interface EventsOwner {
  readonly workspaceId: number;
  readonly id: string;
}

/** The events that another node publishes, for one reader here. */
export interface RemoteEvents {
  /**
   * Resolves when a reader that has read the events up to `after` can go on.
   * @returns the last id in the store; the log, if this node now publishes the events; or null, if there are no more
   */
  next(after: number): Promise<number | EventLog | null>;
  /** Ends a wait, too. */
  close(): void;
}

/** The other nodes: events that they publish for readers here, and readers there of events that are published here. */
export interface EventRelay {
  /** Reads events that this node does not publish. MUST be closed. */
  follow(owner: EventsOwner): RemoteEvents;
  /** Called when this node begins to publish the events of a task or response that other nodes may have published before. */
  opened(id: string): void;
  /** Makes readers on other nodes continue from the store, because texts were erased. MUST be called after the commit. */
  erased(id: string): void;
  /** Notes that a task rests after its event `lastId`, so the next id follows it, whichever node publishes it. */
  rest(tx: Tx, owner: EventsOwner, lastId: number): void;
  /** The next id of a task that rests. Its last event may have been stored by another node. */
  nextId(tx: Tx, owner: EventsOwner): Promise<number>;
  /** Tells readers on other nodes that events up to `upTo` are stored. MUST be called after the commit. */
  stored(owner: EventsOwner, upTo: number): void;
  /** Ends all reads of events that other nodes publish, because this node stops. */
  end(): void;
}

/** What the relay needs of the hub whose events it passes on. */
export interface RelayedLogs {
  /** The log that this node publishes. */
  find(id: string): EventLog | undefined;
  /** Called when another node has erased texts. */
  erasedElsewhere(id: string): void;
  /** Called when another node may have erased texts of anything that has ended. */
  mayBeErased(): void;
}
