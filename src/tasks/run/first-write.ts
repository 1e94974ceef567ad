import type { Db, Ledgers, Tx, TxOptions } from "../../store/db.ts";
import type { Task } from "../task.ts";

/** The task of a run that began early was not stored after all, so the run ends without a trace. */
export class NotDispatched extends Error {
  override readonly name = "NotDispatched";
}

/** The run's part of the transaction failed. Thrown out of the transaction, which is then repeated without it. */
export class JoinRefused extends Error {
  override readonly name = "JoinRefused";
}

/** A run that begins before its task is stored. */
export interface EarlyRun {
  /** As it will be stored. Its `dispatchSeq` is 0 until then. */
  readonly task: Task & { dispatchSeq: number };
  readonly first: FirstWrite;
}

/** The first transaction of a run, which waits to be part of another. */
interface JoinedWork {
  readonly work: (tx: Tx) => Promise<unknown>;
  readonly settle: (outcome: () => unknown) => void;
  outcome: () => unknown;
}

/**
 * Joins the dispatch of a task with the first write of its run. If a slot is free, the run begins before its task is
 * stored, and the intent of its first model call is part of the transaction that stores the task: both need one sync.
 * Until the task is stored, the run writes nothing else.
 */
export class FirstWrite {
  /** The store for the run. */
  readonly db: Db;
  readonly #stored = Promise.withResolvers<boolean>();
  readonly #offered = Promise.withResolvers<void>();
  #isOpen = true;
  #joined: JoinedWork | null = null;

  constructor(db: Db) {
    // Inherits, so that the getters keep telling the current state.
    this.db = Object.assign(Object.create(db) as Db, {
      tx: <Result>(ledgers: Ledgers, work: (tx: Tx) => Promise<Result>, options?: TxOptions) =>
        this.#tx(db, ledgers, work, options),
    });
  }

  /** Whether the task has been stored. Resolves once this is known. */
  get isStored(): Promise<boolean> {
    return this.#stored.promise;
  }

  /**
   * Resolves when the run offers its first write, at the latest after a turn of the event loop: a run that has to
   * wait for something joins nothing.
   */
  async ready(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    setImmediate(resolve);
    await Promise.race([this.#offered.promise, promise]);
    this.#isOpen = false;
  }

  /**
   * Runs the offered write, if there is one.
   * @throws JoinRefused if it fails
   */
  async write(tx: Tx): Promise<void> {
    const joined = this.#joined;
    if (!joined) return;
    try {
      const value = await joined.work(tx);
      joined.outcome = () => value;
    } catch (error) {
      joined.outcome = () => {
        throw error;
      };
      throw new JoinRefused("the first write of a run failed", { cause: error });
    }
  }

  /** The transaction is committed: the run learns how its write ended, and goes on. */
  stored(): void {
    this.#stored.resolve(true);
    this.#joined?.settle(this.#joined.outcome);
  }

  /** Nothing was stored. */
  refused(): void {
    this.#stored.resolve(false);
    this.#joined?.settle(notDispatched);
  }

  async #tx<Result>(
    db: Db,
    ledgers: Ledgers,
    work: (tx: Tx) => Promise<Result>,
    options?: TxOptions,
  ): Promise<Result> {
    if (this.#isOpen) {
      this.#isOpen = false;
      return this.#join(work);
    }
    if (!(await this.#stored.promise)) throw new NotDispatched();
    return db.tx(ledgers, work, options);
  }

  async #join<Result>(work: (tx: Tx) => Promise<Result>): Promise<Result> {
    const { promise, resolve } = Promise.withResolvers<() => unknown>();
    this.#joined = { work, settle: resolve, outcome: notDispatched };
    this.#offered.resolve();
    const outcome = await promise;
    return outcome() as Result;
  }
}

function notDispatched(): never {
  throw new NotDispatched();
}
