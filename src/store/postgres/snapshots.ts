import type { Sql, SqlValue } from "../db.ts";
import { type Connection, type Mode, Pool, transactionSettings } from "./driver.ts";
import { refusalOf } from "./errors.ts";
import { TIMEOUTS } from "./limits.ts";
import { repeat } from "./repeat.ts";
import { encodeParameters } from "./values.ts";

export interface SnapshotOptions {
  /** See `PostgresOptions`. */
  readonly url: string;
  readonly directUrl?: string;
}

const BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/** Reads one state of the database at a time, through a connection of its own: for threads. */
export class Snapshots {
  readonly #pool: Pool;
  readonly #mode: Mode;

  constructor({ url, directUrl }: SnapshotOptions) {
    this.#mode = { isPooled: directUrl !== undefined };
    this.#pool = new Pool({ url, mode: this.#mode, timeouts: TIMEOUTS, max: 1 });
  }

  /**
   * Runs `work`, whose statements all see the same state. If the connection is lost, it runs again on a later state.
   * @throws StoreUnavailable if the database cannot be read now; whatever `work` throws
   */
  async read<Result>(work: (sql: Pick<Sql, "all">) => Promise<Result>): Promise<Result> {
    try {
      return await repeat({ limitMs: TIMEOUTS.retryMs }, () => this.#read(work));
    } catch (error) {
      throw refusalOf(error);
    }
  }

  close(): Promise<void> {
    return this.#pool.close();
  }

  async #read<Result>(work: (sql: Pick<Sql, "all">) => Promise<Result>): Promise<Result> {
    const connection = await this.#pool.take();
    let isUsable = false;
    try {
      // Sent along with the first statement, as nothing is written. What is read before it failed is not used.
      const begun = begin(connection, this.#mode);
      begun.catch(reported);
      const result = await work({
        async all<Row>(sql: string, params?: readonly SqlValue[]) {
          const [{ rows }] = await Promise.all([connection.send(sql, encodeParameters(params)), begun]);
          // The caller names the row's shape: see `Sql.all`.
          return rows as readonly unknown[] as Row[];
        },
      });
      await begun;
      isUsable = true;
      return result;
    } finally {
      if (isUsable) end(connection);
      // After an error the transaction may still be open. A new connection costs less than to find out.
      else connection.release(false);
    }
  }
}

async function begin(connection: Connection, mode: Mode): Promise<void> {
  const begun = connection.send(BEGIN);
  await (mode.isPooled ? Promise.all([begun, connection.send(transactionSettings(TIMEOUTS))]) : begun);
}

/** The result of a read does not wait for the end of its transaction. The next read does. */
function end(connection: Connection): void {
  connection.send("COMMIT").then(
    () => connection.release(true),
    () => connection.release(false),
  );
}

/** Each statement of the transaction throws it. */
function reported(): void {}
