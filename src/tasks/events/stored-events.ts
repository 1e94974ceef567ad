import type { Db } from "../../store/db.ts";
import { BLOCK_BYTES, framesAfter } from "./frames.ts";
import { type EventTable, findBlock, readBlock } from "./store.ts";

/** A reader's memory for an event that is longer than a block. */
export interface EventMemory {
  /** @throws Problem 429 `rate_limited` */
  hold(bytes: number): void;
  release(): void;
}

/** For readers inside this process, which read at once. */
export const UNLIMITED: EventMemory = { hold() {}, release() {} };

/** What has been read of a block, and the id up to which all events have been read with it. */
interface ReadPart {
  readonly piece: Uint8Array;
  readonly upTo: number;
}

/** A long block, of which `at` bytes have been handed out. */
interface BegunBlock {
  readonly bytes: Uint8Array;
  readonly lastId: number;
  at: number;
}

/**
 * Reads the stored events of one task or response. A block is usually short. A longer one has a single event, which is
 * read once, in its turn, and handed out in pieces: its client may stop reading at any time.
 */
export class StoredEvents {
  readonly #db: Db;
  readonly #workspaceId: number;
  readonly #ownerId: string;
  readonly #table: EventTable;
  readonly #memory: EventMemory;
  #begun: BegunBlock | null = null;

  constructor(db: Db, workspaceId: number, ownerId: string, table: EventTable, memory: EventMemory) {
    this.#db = db;
    this.#workspaceId = workspaceId;
    this.#ownerId = ownerId;
    this.#table = table;
    this.#memory = memory;
  }

  /** Whether part of a long event has been handed out. */
  get hasBegun(): boolean {
    return this.#begun !== null;
  }

  /**
   * The next part of the events above `after`.
   * @param skipped bytes of the first of these events that the reader already has
   * @throws whatever the memory's `hold` throws
   */
  async next(after: number, skipped: number): Promise<ReadPart | undefined> {
    if (this.#begun) return this.#pieceOf(this.#begun, after);
    const workspaceId = this.#workspaceId;
    const block = await findBlock(this.#db, workspaceId, this.#ownerId, after, this.#table);
    if (!block) return undefined;
    const { firstId, lastId, length, frames } = block;
    if (frames) return { piece: framesAfter(frames, after).subarray(skipped), upTo: lastId };
    this.#memory.hold(length);
    const all = await readBlock(this.#db, workspaceId, this.#ownerId, firstId, this.#table);
    this.#begun = { bytes: framesAfter(all ?? new Uint8Array(), after), lastId, at: skipped };
    return this.#pieceOf(this.#begun, after);
  }

  /** Gives up the event that has been handed out in part. */
  drop(): void {
    if (this.#begun) this.#memory.release();
    this.#begun = null;
  }

  #pieceOf(begun: BegunBlock, after: number): ReadPart {
    const { bytes, lastId, at } = begun;
    // A copy: a part would keep the whole block in memory for as long as the connection holds it.
    const piece = bytes.slice(at, at + BLOCK_BYTES);
    begun.at += piece.length;
    if (begun.at < bytes.length) return { piece, upTo: after };
    this.drop();
    return { piece, upTo: lastId };
  }
}
