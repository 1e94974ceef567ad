import type { Clock } from "../../base/clock.ts";
import type { Db, Sql, Tx } from "../../store/db.ts";
import { keyOf, PER_DOCUMENT } from "./keys.ts";
import type { SpaceLocks } from "./space-locks.ts";
import type { VectorStore } from "./vector-store.ts";

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

/** Passages marked as missing in one transaction. */
const SLICE = 2_000;

/** A model's vectors differ in length from those stored: the model behind the name was changed. */
export class WrongDimension extends Error {
  override readonly name = "WrongDimension";
}

export interface SpacesParts {
  readonly db: Db;
  readonly clock: Clock;
  readonly vectors: VectorStore;
  readonly locks: SpaceLocks;
}

/**
 * The vector spaces of the store. A new embedding model creates a new space, which is filled while the old one
 * answers; then they are swapped. The previous space is kept, so that the change can be undone.
 *
 * They are remembered here. Other nodes may change them, so whatever must know them for certain reads them in its
 * transaction (`forWriting`), and everything that changes them decides after it has locked them.
 */
export class Spaces {
  readonly #parts: SpacesParts;
  #spaces: readonly Space[] = [];

  constructor(parts: SpacesParts) {
    this.#parts = parts;
  }

  /** Loads the stored spaces, with `name` as the one to search, now or once it is filled. */
  async open(name: string, dimensions: number): Promise<Space> {
    await this.#change(async (tx) => {
      const spaces = await readSpaces(tx);
      const active = spaces.find(({ state }) => state === "active");
      const wanted = spaces.find((space) => space.name === name);
      tx.write("UPDATE vault_spaces SET state = 'kept' WHERE state = 'filling' AND name <> $1", [name]);
      if (wanted && wanted === active) return;
      const state = active ? "filling" : "active";
      tx.write(
        `INSERT INTO vault_spaces (name, dimensions, state, created_at) VALUES ($1, $2, $3, $4)
         ON CONFLICT (name) DO UPDATE SET state = excluded.state`,
        [name, wanted?.dimensions ?? dimensions, state, this.#parts.clock.now()],
      );
    });
    // Including spaces for which an earlier start without sqlite-vec could not create tables.
    for (const space of this.#spaces) {
      if (space.dimensions > 0) await this.dimension(space, space.dimensions);
    }
    const target = this.#spaces.find((space) => space.name === name);
    if (!target) throw new Error("a space was not made");
    if (target.state === "filling") await this.#putDownMissing(target);
    return target;
  }

  /** Whether there is a place for vectors. */
  get isAvailable(): boolean {
    return this.#parts.vectors.isAvailable;
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
    return writtenOf(this.#spaces);
  }

  /** The spaces in which new passages get vectors, which do not change until the transaction has ended. */
  async forWriting(tx: Tx): Promise<readonly Space[]> {
    const { locks } = this.#parts;
    if (!locks.areShared) return this.written;
    locks.toRead(tx);
    return writtenOf(await readSpaces(tx));
  }

  /** The current state of a space: its dimension may have become known. */
  fresh(space: Space): Space {
    return this.#spaces.find(({ id }) => id === space.id) ?? space;
  }

  /** Reads what other nodes have changed. */
  async refresh(): Promise<void> {
    this.#spaces = await readSpaces(this.#parts.db);
  }

  /** All spaces, as the store has them. */
  async current(): Promise<readonly Space[]> {
    if (this.#parts.locks.areShared) await this.refresh();
    return this.#spaces;
  }

  /** The space being searched, read again if another node may just have found out its dimension. */
  async searched(): Promise<Space | undefined> {
    if (this.#parts.locks.areShared && !this.active?.dimensions) await this.refresh();
    return this.active;
  }

  /** Makes room for the space's vectors once their dimension is known. @throws WrongDimension if it has a different one */
  async dimension(space: Space, dimensions: number): Promise<void> {
    const { vectors, locks } = this.#parts;
    const known = this.fresh(space).dimensions;
    if (known !== 0 && known !== dimensions) throw wrongDimension(space, known, dimensions);
    if (!vectors.isAvailable || (locks.areShared && known === dimensions)) return;
    await this.#change(async (tx) => {
      const changed = await tx.run(
        "UPDATE vault_spaces SET dimensions = $2 WHERE id = $1 AND (dimensions = 0 OR dimensions = $2)",
        [space.id, dimensions],
      );
      if (changed === 0) throw wrongDimension(space, null, dimensions);
      vectors.makeRoom(tx, space, dimensions);
    });
  }

  /** Makes the filled space active, unless it is no longer the one to be. Only the latest of the previous ones is kept. */
  async swap(filled: Space): Promise<boolean> {
    return this.#change(async (tx) => {
      const row = await tx.get<Pick<Space, "state">>("SELECT state FROM vault_spaces WHERE id = $1", [
        filled.id,
      ]);
      if (row?.state !== "filling") return false;
      tx.write("UPDATE vault_spaces SET state = 'dropped' WHERE state = 'kept'");
      tx.write("UPDATE vault_spaces SET state = 'kept' WHERE state = 'active'");
      tx.write("UPDATE vault_spaces SET state = 'active' WHERE id = $1", [filled.id]);
      return true;
    });
  }

  /** Removes a slice of the dropped spaces. @returns whether there is more */
  async drop(): Promise<boolean> {
    const { vectors } = this.#parts;
    const space = this.#spaces.find(({ state }) => state === "dropped");
    if (!space || !vectors.isAvailable) return false;
    const left = await this.#change(async (tx) => {
      const row = await tx.get<Pick<Space, "state">>("SELECT state FROM vault_spaces WHERE id = $1", [
        space.id,
      ]);
      // A start has gone back to it.
      if (row?.state !== "dropped") return false;
      if (space.dimensions > 0 && (await vectors.drop(tx, space))) return true;
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
    return left || this.#spaces.some(({ state }) => state === "dropped");
  }

  /** Changes spaces, which no other node reads for its writes in the meantime. */
  async #change<Result>(work: (tx: Tx) => Promise<Result>): Promise<Result> {
    const { db, locks } = this.#parts;
    const result = await db.tx(null, async (tx) => {
      locks.toChange(tx);
      return work(tx);
    });
    await this.refresh();
    locks.changed();
    return result;
  }

  /** Marks every passage as missing a vector. Those that have one are skipped later. */
  async #putDownMissing(space: Space): Promise<void> {
    for (let after = 0; ; ) {
      const last = await this.#parts.db.tx(null, async (tx) => {
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

/** Marks the vectors of all of a document's passages as missing. */
export function putDownAll(tx: Tx, space: Space, document: number): void {
  tx.write(
    `INSERT INTO vault_pending (space_id, chunk_key, retry_at)
     SELECT $1, key, 0 FROM vault_chunks WHERE key BETWEEN $2 AND $3 ON CONFLICT DO NOTHING`,
    [space.id, keyOf(document, 0), keyOf(document, PER_DOCUMENT - 1)],
  );
}

function writtenOf(spaces: readonly Space[]): readonly Space[] {
  return spaces.filter(({ state }) => state === "active" || state === "filling");
}

async function readSpaces(sql: Pick<Sql, "all">): Promise<readonly Space[]> {
  const rows = await sql.all<Space>("SELECT id, name, dimensions, state FROM vault_spaces ORDER BY id");
  return rows.map((row) => ({ ...row }));
}

function wrongDimension({ name }: Space, known: number | null, dimensions: number): WrongDimension {
  const other = known === null ? "another length" : `${known} numbers`;
  return new WrongDimension(`the vectors of ${name} have ${other}, not ${dimensions}`);
}

export function deletePending(tx: Tx, space: Space, document: number): void {
  tx.write("DELETE FROM vault_pending WHERE space_id = $1 AND chunk_key BETWEEN $2 AND $3", [
    space.id,
    keyOf(document, 0),
    keyOf(document, PER_DOCUMENT - 1),
  ]);
}
