import type { Clock } from "../base/clock.ts";
import type { Sql, Tx } from "../store/db.ts";

/**
 * Counts the changes that can end somebody's rights: a token revoked or rotated, an agent archived, a session ended. What was read
 * from the store before a change says nothing after it.
 */
export class RightsRevision {
  #count = 0;
  #uncommitted = 0;

  /**
   * The number of the present state. Null while a change is written but not committed: another connection still reads the state
   * before it.
   */
  get settled(): number | null {
    return this.#uncommitted === 0 ? this.#count : null;
  }

  /**
   * Announces a change that this transaction writes. MUST be called within it: transactions that are committed with the same sync
   * notice the change as well.
   */
  change(tx: Tx): void {
    this.#uncommitted += 1;
    const settle = (): void => {
      this.#uncommitted -= 1;
      this.#count += 1;
    };
    tx.onCommit(settle);
    tx.onRollback(settle);
  }

  /** A change that is on disk already, or that only memory holds. */
  changed(): void {
    this.#count += 1;
  }
}

export interface GrantParts {
  readonly revision: RightsRevision;
  readonly clock: Pick<Clock, "now">;
}

/**
 * What lets a caller in: one secret of a token, a token itself, or a browser's session. It tells whether that still holds. Callers
 * keep it, so that a call can ask again when it commits or sends something.
 */
export class Grant {
  readonly #parts: GrantParts;
  readonly #look: (sql: Sql) => Promise<number | undefined>;
  #until = 0;
  /** The state that `#until` was read in; null: nobody has read it. */
  #seen: number | null = null;

  /**
   * @param look Reads until when it holds, in milliseconds since the Unix epoch: infinite without an end, undefined if it has
   *   ended. It MUST see what its `sql` sees.
   */
  constructor(parts: GrantParts, look: (sql: Sql) => Promise<number | undefined>) {
    this.#parts = parts;
    this.#look = look;
  }

  /** Takes what was read outside of `look`. `seen` is `RightsRevision.settled` of before it was read. */
  know(until: number, seen: number | null): void {
    this.#until = until;
    this.#seen = seen;
  }

  /** Whether it holds now, as `sql` sees it. A look into memory unless somebody's rights have changed since the last one. */
  holds(sql: Sql): boolean | Promise<boolean> {
    if (!this.#isKnown) return this.#read(sql).then((until) => this.#parts.clock.now() < until);
    // Most tokens do not expire, and the clock is what takes the time here.
    return this.#until === Number.POSITIVE_INFINITY || this.#parts.clock.now() < this.#until;
  }

  /** When it ends, in milliseconds since the Unix epoch; infinite without an end. The time may have passed. As cheap as `holds`. */
  endsAt(sql: Sql): number | Promise<number> {
    return this.#isKnown ? this.#until : this.#read(sql);
  }

  get #isKnown(): boolean {
    return this.#seen !== null && this.#seen === this.#parts.revision.settled;
  }

  async #read(sql: Sql): Promise<number> {
    const { revision } = this.#parts;
    const seen = revision.settled;
    const until = (await this.#look(sql)) ?? 0;
    // A change that came while this was read may not be in it.
    this.know(until, seen === revision.settled ? seen : null);
    return until;
  }
}
