import type { Db } from "../../store/db.ts";
import { BLOCK_BYTES, framesAfter } from "./frames.ts";
import { type EventTable, nextEvents } from "./store.ts";

/** A block that is longer than one piece, and has been read up to `at`. */
interface BegunBlock {
  readonly firstId: number;
  readonly lastId: number;
  readonly length: number;
  at: number;
}

/**
 * Reads the stored events of one task or response. An event may contain a whole text, and each of many clients may
 * stop reading at any time, so a reader gets pieces of at most 64 KiB, which may end in the middle of an event.
 */
export class StoredEvents {
  readonly #db: Db;
  readonly #workspaceId: number;
  readonly #ownerId: string;
  readonly #table: EventTable;
  #begun: BegunBlock | null = null;

  constructor(db: Db, workspaceId: number, ownerId: string, table: EventTable) {
    this.#db = db;
    this.#workspaceId = workspaceId;
    this.#ownerId = ownerId;
    this.#table = table;
  }

  /**
   * The next piece of the events with ids above `after`, and the id up to which all events have now been read.
   * @throws Error if texts of a block were erased after its first piece was read
   */
  async next(after: number): Promise<{ readonly piece: Uint8Array; readonly upTo: number } | undefined> {
    const begun = this.#begun;
    if (begun) return { piece: await this.#pieceOf(begun), upTo: this.#begun ? after : begun.lastId };
    const block = await nextEvents(this.#db, this.#workspaceId, this.#ownerId, after, this.#table);
    if (!block) return undefined;
    const { firstId, lastId, frames } = block;
    const left = framesAfter(frames, after);
    if (left.length <= BLOCK_BYTES) return { piece: left, upTo: lastId };
    const at = frames.length - left.length + BLOCK_BYTES;
    this.#begun = { firstId, lastId, length: frames.length, at };
    // A copy, because the part would keep the whole block in memory.
    return { piece: left.slice(0, BLOCK_BYTES), upTo: after };
  }

  async #pieceOf(begun: BegunBlock): Promise<Uint8Array> {
    const { table, owner } = this.#table;
    const { firstId, length, at } = begun;
    const row = await this.#db.get<{ length: number; piece: Uint8Array }>(
      `SELECT octet_length(frames) AS length, substr(frames, $4, $5) AS piece FROM ${table}
       WHERE workspace_id = $1 AND ${owner} = $2 AND first_id = $3`,
      [this.#workspaceId, this.#ownerId, firstId, at + 1, BLOCK_BYTES],
    );
    if (row?.length !== length) throw new Error("stored events were erased while they were read");
    begun.at += row.piece.length;
    if (begun.at >= length) this.#begun = null;
    return row.piece;
  }
}
