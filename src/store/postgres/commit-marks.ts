import { randomUUID } from "node:crypto";
import { OutcomeUnknown } from "../db.ts";
import type { Connection, Pool } from "./driver.ts";
import { mayBeRepeated } from "./errors.ts";
import { repeat } from "./repeat.ts";
import type { Session } from "./session.ts";

/** The most earlier marks that a transaction deletes. */
const MOST_SPENT = 64;

const MARK = `WITH spent AS (DELETE FROM commit_marks WHERE owner = $1 AND mark = ANY ($3::bigint[]))
INSERT INTO commit_marks (owner, mark, fenced) VALUES ($1, $2, FALSE)`;
const SETTLE = `INSERT INTO commit_marks (owner, mark, fenced) VALUES ($1, $2, TRUE)
ON CONFLICT (owner, mark) DO UPDATE SET fenced = commit_marks.fenced RETURNING fenced`;
/** What other processes have left. A fence is needed for as long as a frozen session may continue. */
const DELETE_OLD = "DELETE FROM commit_marks WHERE created_at < now() - interval '1 day'";

/**
 * Finds out whether a transaction was committed if the connection was lost before the answer to COMMIT.
 *
 * Each transaction inserts a row, its mark. To settle its outcome, the same row is inserted again. If the transaction
 * was committed, its row is there. If it is still open, the insertion waits for its end. Otherwise the new row is a
 * fence: the transaction can no longer be committed, even if a frozen session continues much later, because its own
 * mark would be the second.
 *
 * `pg_xact_status` cannot do that. A transaction whose log was lost in a crash leaves its number to another one, and it
 * does not wait for a session that has yet to read the COMMIT from its socket.
 */
export class CommitMarks {
  readonly #owner = randomUUID();
  #last = 0;
  /** Marks of ended transactions. The next transactions delete them. */
  readonly #spent: number[] = [];

  /**
   * Returns the mark of a transaction that is about to begin. It deletes earlier marks, which the transaction can see only if
   * their own ended before it began.
   */
  next(): Mark {
    this.#last += 1;
    return new Mark({ owner: this.#owner, number: this.#last, spent: this.#spent });
  }

  /** Deletes what other processes have left. */
  static async deleteOld(connection: Pick<Connection, "send">): Promise<void> {
    await connection.send(DELETE_OLD);
  }
}

interface MarkParts {
  readonly owner: string;
  readonly number: number;
  /** Marks of ended transactions. */
  readonly spent: number[];
}

/** The mark of one transaction. Either `committed` or `rolledBack` MUST be called, unless its outcome is unknown. */
export class Mark {
  readonly #parts: MarkParts;
  readonly #deleted: readonly number[];
  #isWritten = false;

  constructor(parts: MarkParts) {
    this.#parts = parts;
    this.#deleted = parts.spent.splice(0, MOST_SPENT);
  }

  get isWritten(): boolean {
    return this.#isWritten;
  }

  /** Writes the mark. MUST be the last statement of the transaction. */
  write(session: Session): void {
    const { owner, number } = this.#parts;
    this.#isWritten = true;
    session.write(MARK, [owner, number, `{${this.#deleted.join(",")}}`]);
  }

  committed(): void {
    if (this.#isWritten) this.#parts.spent.push(this.#parts.number);
    else this.rolledBack();
  }

  /** The marks that it was to delete are still there. */
  rolledBack(): void {
    this.#parts.spent.push(...this.#deleted);
  }

  /**
   * Whether the transaction was committed. If not, it never will be.
   * @throws OutcomeUnknown if the database does not answer within `limitMs`
   */
  async settle(pool: Pool, limitMs: number): Promise<"committed" | "lost"> {
    try {
      const always = { limitMs, mostAttempts: Number.POSITIVE_INFINITY, mayRepeat: () => true };
      // Repeated after every error: the mark may be locked by the frozen transaction.
      const fenced = await repeat(always, () => this.#fence(pool));
      return fenced === 0 ? "committed" : "lost";
    } catch (error) {
      throw new OutcomeUnknown(
        "the connection to the database was lost during a commit, and its outcome could not be determined",
        error,
      );
    }
  }

  async #fence(pool: Pool): Promise<number> {
    const connection = await pool.take();
    let isUsable = true;
    try {
      const { rows } = await connection.send(SETTLE, [this.#parts.owner, String(this.#parts.number)]);
      return Number(rows[0]?.fenced);
    } catch (error) {
      isUsable = !mayBeRepeated(error);
      throw error;
    } finally {
      connection.release(isUsable);
    }
  }
}
