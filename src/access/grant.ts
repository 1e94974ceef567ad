import type { Clock } from "../base/clock.ts";
import type { Bus } from "../nodes/bus.ts";
import { ALONE } from "../nodes/local-nodes.ts";
import type { Sql, Tx } from "../store/db.ts";
import { isTrusted } from "./trust.ts";

/**
 * Counts the changes that can end a caller's rights: a token revoked or rotated, an agent archived, a session ended.
 * Data read before such a change is outdated.
 */
export class RightsRevision {
  readonly #bus: Pick<Bus, "deafForMs">;
  #count = 0;
  #uncommitted = 0;

  constructor(bus: Pick<Bus, "deafForMs"> = ALONE.bus) {
    this.#bus = bus;
  }

  /**
   * The number of the current state. Null while a change is written but not committed, since other connections still
   * read the previous state, and while changes on other nodes may be unknown.
   */
  get settled(): number | null {
    return this.#uncommitted === 0 && isTrusted(this.#bus) ? this.#count : null;
  }

  /**
   * Announces a change that this transaction writes. MUST be called within that transaction, so that transactions
   * committed with the same sync notice the change as well.
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

  /** Announces a change that is already on disk, or only in memory. Also after changes that may have been missed. */
  changed(): void {
    this.#count += 1;
  }
}

export interface GrantParts {
  readonly revision: RightsRevision;
  readonly clock: Pick<Clock, "now">;
}

/**
 * The basis of a caller's rights: one secret of a token, a token itself, or a browser's session. Checks whether it is
 * still valid. Callers keep it, so a call can check again when it commits or sends something.
 */
export class Grant {
  readonly #parts: GrantParts;
  readonly #look: (sql: Sql) => Promise<number | undefined>;
  #until = 0;
  /** The state in which `#until` was read; null if it has not been read. */
  #seen: number | null = null;

  /**
   * @param look Reads the end in milliseconds since the Unix epoch: infinite without an end, undefined if it has
   *   ended. It MUST read through the given `sql`.
   */
  constructor(parts: GrantParts, look: (sql: Sql) => Promise<number | undefined>) {
    this.#parts = parts;
    this.#look = look;
  }

  /** Sets an end that was read elsewhere. `seen` is `RightsRevision.settled` from before it was read. */
  setExpiry(until: number, seen: number | null): void {
    this.#until = until;
    this.#seen = seen;
  }

  /**
   * Whether the grant is valid now, as `sql` sees it. Answered from memory unless rights have changed since the last
   * check.
   */
  isValid(sql: Sql): boolean | Promise<boolean> {
    if (!this.#isKnown) return this.#read(sql).then((until) => this.#parts.clock.now() < until);
    // Most tokens do not expire, and reading the clock is the expensive part here.
    return this.#until === Number.POSITIVE_INFINITY || this.#parts.clock.now() < this.#until;
  }

  /** Whether the grant was valid when it was last read, and has not expired since: for when it cannot be read. */
  get wasValid(): boolean {
    return this.#parts.clock.now() < this.#until;
  }

  /** The end in milliseconds since the Unix epoch; infinite without one. May be in the past. As cheap as `isValid`. */
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
    // A change made during the read may be missing from its result.
    this.setExpiry(until, seen === revision.settled ? seen : null);
    return until;
  }
}
