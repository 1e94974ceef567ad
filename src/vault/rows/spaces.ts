import type { Clock } from "../../base/clock.ts";
import type { Db, Tx } from "../../store/db.ts";
import { keyOf, PER_DOCUMENT } from "./keys.ts";
import { createVectors, dropVectors } from "./vec0.ts";

/** A set of comparable vectors: of one model, one dimension and one way of prompting it. */
export interface Space {
  readonly id: number;
  readonly name: string;
  /** Zero until the model has answered for the first time; it has no vectors until then. */
  readonly dimensions: number;
  /**
   * `active` is searched, `filling` will replace it, `kept` is the previous one, in case of a change back, and
   * `dropped` is being removed.
   */
  readonly state: "active" | "filling" | "kept" | "dropped";
}

interface SpaceRow {
  readonly id: number;
  readonly name: string;
  readonly dimensions: number;
  readonly state: Space["state"];
}

/** Passages marked as missing in one transaction. */
const SLICE = 2_000;

/** A model's vectors differ in length from those stored: the model behind the name was changed. */
export class WrongDimension extends Error {
  override readonly name = "WrongDimension";
}

/**
 * The vector spaces of this node. A new embedding model creates a new space, which is filled while the old one
 * answers; then they are swapped. The previous space is kept, so that the change can be undone.
 */
export class Spaces {
  readonly #db: Db;
  readonly #clock: Clock;
  /** Whether sqlite-vec is available. Without it, passages are marked as missing, for a later start to fill in. */
  readonly isAvailable: boolean;
  #spaces: Space[] = [];

  constructor(db: Db, clock: Clock, isAvailable: boolean) {
    this.#db = db;
    this.#clock = clock;
    this.isAvailable = isAvailable;
  }

  /** Loads the stored spaces, with `name` as the one to search, now or once it is filled. */
  async open(name: string, dimensions: number): Promise<void> {
    await this.#read();
    const active = this.#spaces.find(({ state }) => state === "active");
    const wanted = this.#spaces.find((space) => space.name === name);
    await this.#db.tx(null, async (tx) => {
      tx.write("UPDATE vault_spaces SET state = 'kept' WHERE state = 'filling' AND name <> $1", [name]);
      if (wanted && wanted === active) return;
      const state = active ? "filling" : "active";
      tx.write(
        `INSERT INTO vault_spaces (name, dimensions, state, created_at) VALUES ($1, $2, $3, $4)
         ON CONFLICT (name) DO UPDATE SET state = excluded.state`,
        [name, wanted?.dimensions ?? dimensions, state, this.#clock.now()],
      );
    });
    await this.#read();
    // Including spaces for which an earlier start without sqlite-vec could not create tables.
    for (const space of this.#spaces) {
      if (space.dimensions > 0) await this.dimension(space, space.dimensions);
    }
    const target = this.#spaces.find((space) => space.name === name);
    if (target?.state === "filling") await this.#putDownMissing(target);
  }

  get all(): readonly Space[] {
    return this.#spaces;
  }

  /** The space being searched. */
  get active(): Space | undefined {
    return this.#spaces.find(({ state }) => state === "active");
  }

  /** The spaces in which new passages get vectors. */
  get written(): readonly Space[] {
    return this.#spaces.filter(({ state }) => state === "active" || state === "filling");
  }

  /** The current state of a space: its dimension may have become known. */
  fresh(space: Space): Space {
    return this.#spaces.find(({ id }) => id === space.id) ?? space;
  }

  /** Makes room for the space's vectors once their dimension is known. @throws WrongDimension if it has a different one */
  async dimension(space: Space, dimensions: number): Promise<void> {
    const known = this.fresh(space).dimensions;
    if (known !== 0 && known !== dimensions) {
      throw new WrongDimension(`the vectors of ${space.name} have ${known} numbers, not ${dimensions}`);
    }
    if (!this.isAvailable) return;
    await this.#db.tx(null, async (tx) => {
      tx.write("UPDATE vault_spaces SET dimensions = $2 WHERE id = $1", [space.id, dimensions]);
      createVectors(tx, space, dimensions);
    });
    await this.#read();
  }

  /** Makes the filled space active. Only the latest of the previous ones is kept. */
  async swap(filled: Space): Promise<void> {
    await this.#db.tx(null, async (tx) => {
      tx.write("UPDATE vault_spaces SET state = 'dropped' WHERE state = 'kept'");
      tx.write("UPDATE vault_spaces SET state = 'kept' WHERE state = 'active'");
      tx.write("UPDATE vault_spaces SET state = 'active' WHERE id = $1", [filled.id]);
    });
    await this.#read();
  }

  /** Removes a slice of the dropped spaces. @returns whether there is more */
  async drop(): Promise<boolean> {
    const space = this.#spaces.find(({ state }) => state === "dropped");
    if (!space || !this.isAvailable) return false;
    const left = await this.#db.tx(null, async (tx) => {
      if (space.dimensions > 0 && (await dropVectors(tx, space))) return true;
      const pending = await tx.run(
        `DELETE FROM vault_pending WHERE space_id = $1 AND chunk_key IN
         (SELECT chunk_key FROM vault_pending WHERE space_id = $1 ORDER BY chunk_key LIMIT $2)`,
        [space.id, SLICE],
      );
      if (pending === 0) tx.write("DELETE FROM vault_spaces WHERE id = $1", [space.id]);
      // Its vectors are gone, with their table.
      else tx.write("UPDATE vault_spaces SET dimensions = 0 WHERE id = $1", [space.id]);
      return pending > 0;
    });
    if (!left || space.dimensions > 0) await this.#read();
    return left || this.#spaces.some(({ state }) => state === "dropped");
  }

  async #read(): Promise<void> {
    const rows = await this.#db.all<SpaceRow>(
      "SELECT id, name, dimensions, state FROM vault_spaces ORDER BY id",
    );
    this.#spaces = rows.map((row) => ({ ...row }));
  }

  /** Marks every passage as missing a vector. Those that have one are skipped later. */
  async #putDownMissing(space: Space): Promise<void> {
    for (let after = 0; ; ) {
      const last = await this.#db.tx(null, async (tx) => {
        const rows = await tx.all<{ key: number }>(
          "SELECT key FROM vault_chunks WHERE key > $1 ORDER BY key LIMIT $2",
          [after, SLICE],
        );
        const end = rows[rows.length - 1]?.key;
        if (end === undefined) return undefined;
        tx.write(
          `INSERT INTO vault_pending (space_id, chunk_key, retry_at)
           SELECT $1, key, 0 FROM vault_chunks WHERE key > $2 AND key <= $3 ON CONFLICT DO NOTHING`,
          [space.id, after, end],
        );
        return end;
      });
      if (last === undefined) return;
      after = last;
    }
  }
}

/** Marks a passage's vector as missing. */
export function putDown(tx: Tx, space: Space, key: number): void {
  tx.write("INSERT INTO vault_pending (space_id, chunk_key, retry_at) VALUES ($1, $2, 0)", [space.id, key]);
}

export function deletePending(tx: Tx, space: Space, document: number): void {
  tx.write("DELETE FROM vault_pending WHERE space_id = $1 AND chunk_key BETWEEN $2 AND $3", [
    space.id,
    keyOf(document, 0),
    keyOf(document, PER_DOCUMENT - 1),
  ]);
}
