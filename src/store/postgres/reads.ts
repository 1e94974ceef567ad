import type { Sql, SqlValue } from "../db.ts";
import { countRows, turnOfRead } from "../reads.ts";
import type { Pool, Row } from "./driver.ts";
import { mustReconnect, refusalOf } from "./errors.ts";
import { repeat } from "./repeat.ts";
import { encodeParameters, type Parameter } from "./values.ts";

/** Reads outside transactions, which take turns: see `turnOfRead`. */
export function readsInTurn(pool: Pool, limitMs: number): Pick<Sql, "all" | "get"> {
  const { all } = urgentReads(pool, limitMs);
  async function allInTurn<Row>(sql: string, params?: readonly SqlValue[]): Promise<Row[]> {
    const turn = turnOfRead(params);
    if (turn) await turn;
    return all<Row>(sql, params);
  }
  return {
    all: allInTurn,
    async get<Row>(sql: string, params?: readonly SqlValue[]) {
      return (await allInTurn<Row>(sql, params))[0];
    },
  };
}

/** Reads that wait for no turn, and count like all others. A lost connection is replaced, and the read repeated. */
export function urgentReads(pool: Pool, limitMs: number): Pick<Sql, "all" | "get"> {
  async function all<Row>(sql: string, params?: readonly SqlValue[]): Promise<Row[]> {
    const encoded = encodeParameters(params);
    try {
      const rows = await repeat({ limitMs }, () => read(pool, sql, encoded));
      countRows(rows);
      // The caller names the row's shape: see `Sql.all`.
      return rows as readonly unknown[] as Row[];
    } catch (error) {
      throw refusalOf(error);
    }
  }
  return {
    all,
    async get<Row>(sql: string, params?: readonly SqlValue[]) {
      return (await all<Row>(sql, params))[0];
    },
  };
}

async function read(pool: Pool, sql: string, params: readonly Parameter[]): Promise<Row[]> {
  const connection = await pool.take();
  let isUsable = true;
  try {
    return (await connection.send(sql, params)).rows;
  } catch (error) {
    isUsable = !mustReconnect(error);
    throw error;
  } finally {
    connection.release(isUsable);
  }
}
