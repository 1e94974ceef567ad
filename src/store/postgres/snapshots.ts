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
   * Runs `work`, whose statements all see the same state. Lost connections are replaced before it begins, and not once it
   * has begun.
   * @throws StoreUnavailable if the database cannot be read now; whatever `work` throws
   */
  async read<Result>(work: (sql: Pick<Sql, "all">) => Promise<Result>): Promise<Result> {
    const connection = await this.#begin();
    let isUsable = false;
    try {
      const result = await work({
        async all<Row>(sql: string, params?: readonly SqlValue[]) {
          // The caller names the row's shape: see `Sql.all`.
          const { rows } = await connection.send(sql, encodeParameters(params));
          return rows as readonly unknown[] as Row[];
        },
      });
      await connection.send("COMMIT");
      isUsable = true;
      return result;
    } catch (error) {
      throw refusalOf(error);
    } finally {
      // After an error the transaction may still be open. A new connection costs less than to find out.
      connection.release(isUsable);
    }
  }

  close(): Promise<void> {
    return this.#pool.close();
  }

  async #begin(): Promise<Connection> {
    try {
      return await repeat({ limitMs: TIMEOUTS.retryMs }, async () => {
        const connection = await this.#pool.take();
        try {
          const begun = connection.send(BEGIN);
          await (this.#mode.isPooled
            ? Promise.all([begun, connection.send(transactionSettings(TIMEOUTS))])
            : begun);
          return connection;
        } catch (error) {
          connection.release(false);
          throw error;
        }
      });
    } catch (error) {
      throw refusalOf(error);
    }
  }
}
