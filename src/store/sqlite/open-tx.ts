import { type CommitWork, type LedgerTail, type SqlValue, StoreUnavailable, type Tx } from "../db.ts";
import { callHooks } from "../hooks.ts";
import type { RowSeals } from "../seals/seals.ts";
import type { Connection } from "./connection.ts";
import { refusalOf } from "./engine-errors.ts";

/** The works that the transactions of one commit share, by their class. */
export type CommitWorks = Map<new () => CommitWork, CommitWork>;

const NO_TAILS: ReadonlyMap<number, LedgerTail> = new Map();

/** A transaction of a group. */
export class OpenTx implements Tx {
  readonly seals: RowSeals;
  readonly ledgers: number[];
  #undo: (() => void)[] | null = null;
  #done: (() => void)[] | null = null;
  #connection: Connection | null;
  /** Why a `write` failed, and with it the transaction. */
  #failure: { readonly error: unknown } | null = null;
  /** Null for what is written before the commit: nothing is written after it. */
  readonly #shared: CommitWorks | null;

  constructor(connection: Connection, seals: RowSeals, ledgers: number[], shared: CommitWorks | null = null) {
    this.ledgers = ledgers;
    this.#connection = connection;
    this.seals = seals;
    this.#shared = shared;
  }

  get lockedTails(): ReadonlyMap<number, LedgerTail> {
    return NO_TAILS;
  }

  /**
   * Runs the work of the transaction.
   * @throws whatever `work` throws, unless a `write` failed before
   */
  async perform<Result>(work: (tx: Tx) => Promise<Result>): Promise<Result> {
    try {
      const value = await work(this);
      if (!this.#failure) return value;
    } catch (error) {
      if (!this.#failure) throw error;
    }
    throw this.#failure.error;
  }

  async all<Row>(sql: string, params?: readonly SqlValue[]): Promise<Row[]> {
    try {
      return this.#open().all<Row>(sql, params);
    } catch (error) {
      throw refusalOf(error);
    }
  }

  async get<Row>(sql: string, params?: readonly SqlValue[]): Promise<Row | undefined> {
    try {
      return this.#open().get<Row>(sql, params);
    } catch (error) {
      throw refusalOf(error);
    }
  }

  async run(sql: string, params?: readonly SqlValue[]): Promise<number> {
    try {
      return this.#open().run(sql, params);
    } catch (error) {
      throw refusalOf(error);
    }
  }

  write(sql: string, params?: readonly SqlValue[]): void {
    this.#requireGoingOn();
    if (this.#failure) return;
    try {
      this.#open().run(sql, params);
    } catch (error) {
      this.#failure = { error: refusalOf(error) };
    }
  }

  onRollback(undo: () => void): void {
    this.#undo ??= [];
    this.#undo.push(undo);
  }

  onCommit(done: () => void): void {
    this.#done ??= [];
    this.#done.push(done);
  }

  shared<Work extends CommitWork>(kind: new () => Work): Work {
    if (!this.#shared) throw new Error("the other transactions of this commit have ended");
    const known = this.#shared.get(kind);
    if (known) return known as Work;
    const work = new kind();
    this.#shared.set(kind, work);
    return work;
  }

  rolledBack(): void {
    callHooks(this.#undo?.reverse() ?? []);
  }

  committed(): void {
    callHooks(this.#done ?? []);
  }

  /** A transaction kept beyond its end MUST NOT write into another one. */
  end(): void {
    this.#connection = null;
  }

  #open(): Connection {
    const connection = this.#requireGoingOn();
    if (this.#failure) throw this.#failure.error;
    // After some errors the engine ends the transaction by itself. Then each statement would be committed at once.
    if (!connection.database.inTransaction) throw new StoreUnavailable("the transaction is lost");
    return connection;
  }

  #requireGoingOn(): Connection {
    if (!this.#connection) throw new Error("the transaction has ended");
    return this.#connection;
  }
}
