import type { Db, Sql, SqlValue, Tx } from "../db.ts";
import { RowSeals } from "../seals/seals.ts";

export interface OpenTransaction {
  all(sql: string, params: readonly SqlValue[]): Promise<readonly unknown[]>;
  run(sql: string, params: readonly SqlValue[]): Promise<number>;
}

/**
 * A store all of whose transactions are part of one that is open already, for parts that read or write a store that is
 * being copied. Nothing runs before its commit or once it has locked a ledger: nobody else uses the store.
 */
export class DbWithin implements Db {
  readonly seals = new RowSeals(null);
  readonly #open: OpenTransaction;
  readonly #writes: Promise<unknown>[] = [];

  constructor(open: OpenTransaction) {
    this.#open = open;
  }

  get urgent(): Sql {
    return this;
  }

  async all<Row>(sql: string, params: readonly SqlValue[] = []): Promise<Row[]> {
    // The caller names the row's shape: see `Sql.all`.
    return (await this.#open.all(sql, params)) as Row[];
  }

  async get<Row>(sql: string, params?: readonly SqlValue[]): Promise<Row | undefined> {
    return (await this.all<Row>(sql, params))[0];
  }

  run(sql: string, params: readonly SqlValue[] = []): Promise<number> {
    return this.#open.run(sql, params);
  }

  async tx<T>(_: unknown, work: (tx: Tx) => Promise<T>): Promise<T> {
    const result = await work({
      ...{ seals: this.seals, ledgers: [], lockedTails: new Map() },
      all: (sql, params) => this.all(sql, params),
      get: (sql, params) => this.get(sql, params),
      run: (sql, params) => this.run(sql, params),
      write: (sql, params) => void this.#writes.push(this.run(sql, params)),
      onRollback() {},
      onCommit() {},
      shared() {
        throw new Error("commits are not shared while a store is copied");
      },
    });
    await Promise.all(this.#writes.splice(0));
    return result;
  }

  beforeCommit(): void {}

  afterLock(): void {}

  async close(): Promise<void> {}
}
