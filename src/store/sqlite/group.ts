import { RoundRobin, type WaitingItem } from "../../base/round-robin.ts";
import { type Ledgers, OutcomeUnknown, StoreUnavailable, type Tx, type TxOptions } from "../db.ts";
import { RowSeals } from "../seals/seals.ts";
import { type Connection, sqliteCode } from "./connection.ts";
import { refusalOf, unavailable } from "./engine-errors.ts";
import { type CommitWorks, OpenTx } from "./open-tx.ts";
import { SyncWait } from "./sync-wait.ts";

/**
 * Maximum number of transactions committed with one sync. More would block the event loop for too long; fewer would
 * waste syncs.
 */
const GROUP_LIMIT = 256;
/**
 * Once a group has used this much of the thread's time, it takes no more transactions, and the others wait for the next
 * group. Between two groups, the event loop does other work, so the first of many calls that begin together are not
 * answered with the last. A group may take as long as the last sync did, but never longer than the second figure: a slow disk
 * syncs less often then.
 */
const GROUP_CPU_MS = 3;
const LONGEST_GROUP_CPU_MS = 15;
/** Maximum number of waiting transactions. Each belongs to an open call, so this is far more than a node serves. */
const QUEUE_LIMIT = 20_000;
const BUSY_RETRY_MS = 20;
const BUSY_TRIES = 500;
const BUSY = /^SQLITE_BUSY/;

interface TransactionJob extends WaitingItem {
  readonly work: (tx: Tx) => Promise<unknown>;
  readonly ledgers: number[];
  readonly options: TxOptions;
  readonly settle: (outcome: TransactionOutcome) => void;
}

type TransactionOutcome =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly error: unknown };

/** Why writes are refused. `isLost`: even evidence of the refusal would be lost, or would damage the file. */
export interface WriteRefusal {
  readonly reason: string;
  readonly isLost: boolean;
}

/** Decides whether the store may be written. */
export interface WriteGuard {
  /** Called within each transaction, before anything is written. */
  look(): void;
  /** Called once a transaction that had begun is undone as a whole. */
  failed(): void;
  /** Resolves once everything that the connection has committed is on disk. If it rejects, `refusal` MUST be set. */
  sync(): Promise<void>;
  /** Null if writes are accepted. */
  readonly refusal: WriteRefusal | null;
}

/** For a connection that syncs at each commit by itself. */
const UNGUARDED: WriteGuard = { look() {}, failed() {}, sync: async () => {}, refusal: null };

export interface GroupOptions {
  readonly guard?: WriteGuard;
  readonly seals?: RowSeals;
  readonly cpuMs?: () => number;
  /** See `SqliteOptions`. */
  readonly rerunWork?: boolean;
}

function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

/** The place in the order of turns for transactions that belong to no workspace, or to several. */
const NODE = 0;

function ledgersOf(ledgers: Ledgers): number[] {
  if (typeof ledgers === "number") return [ledgers];
  return ledgers ? [...ledgers] : [];
}

/**
 * Group commit: jobs that arrive during one turn of the event loop, or while the last group is being synced, run one
 * after another inside one database transaction. A failing job undoes only its own writes: each has a savepoint, except
 * the first, which has nothing before it to keep. SQLite copies each page that is changed under a savepoint.
 * Workspaces take turns, one job each.
 */
export class GroupCommit {
  readonly #connection: Connection;
  readonly #guard: WriteGuard;
  readonly #seals: RowSeals;
  readonly #cpuMs: () => number;
  readonly #rerunWork: boolean;
  readonly #queue = new RoundRobin<TransactionJob>();
  #scheduled = false;
  #ended = false;
  #idle: (() => void)[] = [];
  #last: ((tx: Tx) => Promise<void>) | null = null;
  #between: (() => void)[] = [];
  #lastSyncMs = 0;
  /** What reads wait for. */
  readonly syncing = new SyncWait();

  /** @param cpuMs the time that this thread has used so far, in milliseconds */
  constructor(
    connection: Connection,
    {
      guard = UNGUARDED,
      seals = new RowSeals(null),
      cpuMs = threadCpuMs,
      rerunWork = false,
    }: GroupOptions = {},
  ) {
    this.#connection = connection;
    this.#seals = seals;
    this.#guard = guard;
    this.#cpuMs = cpuMs;
    this.#rerunWork = rerunWork;
  }

  submit<T>(work: (tx: Tx) => Promise<T>, options: TxOptions, appendsTo: Ledgers = null): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.#ended) {
        reject(new StoreUnavailable("the store is closed"));
        return;
      }
      const refused = this.#refused(options);
      if (refused) {
        reject(refused);
        return;
      }
      if (this.#queue.size >= QUEUE_LIMIT) {
        reject(new StoreUnavailable(`${QUEUE_LIMIT} transactions are waiting already`));
        return;
      }
      const ledgers = ledgersOf(appendsTo);
      const [only] = ledgers;
      this.#queue.add({
        workspaceId: options.turnOf ?? (only !== undefined && ledgers.length === 1 ? only : NODE),
        work,
        ledgers,
        options,
        settle: (outcome) => (outcome.ok ? resolve(outcome.value as T) : reject(outcome.error)),
      });
      this.#schedule();
    });
  }

  /** Runs `work` at the end of each group, before its commit. */
  beforeCommit(work: (tx: Tx) => Promise<void>): void {
    if (this.#last) throw new Error("a function already runs before each commit");
    this.#last = work;
  }

  /** Runs `work` on the connection while no transaction is open. */
  between<T>(work: (connection: Connection) => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.#ended) {
        reject(new StoreUnavailable("the store is closed"));
        return;
      }
      this.#between.push(() => {
        try {
          resolve(work(this.#connection));
        } catch (error) {
          reject(refusalOf(error));
        }
      });
      this.#schedule();
    });
  }

  /** Accepts no more jobs, and resolves when none is waiting. */
  async end(): Promise<void> {
    this.#ended = true;
    if (!this.#scheduled && this.#queue.size === 0) return;
    await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  /** `setImmediate` runs after the sockets of this turn have been read, so their calls share the group. */
  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => void this.#flush());
  }

  async #flush(): Promise<void> {
    for (const work of this.#between.splice(0)) work();
    if (this.#queue.size > 0) for (const settle of await this.#commit()) settle();
    this.#scheduled = false;
    if (this.#queue.size > 0 || this.#between.length > 0) {
      this.#schedule();
      return;
    }
    for (const resolve of this.#idle.splice(0)) resolve();
  }

  /** Commits a group. @returns functions that settle its jobs */
  async #commit(): Promise<(() => void)[]> {
    const written: OpenTx[] = [];
    const group: TransactionJob[] = [];
    const outcomes: TransactionOutcome[] = [];
    const shared: CommitWorks = new Map();
    try {
      await this.#begin();
      const end = this.#cpuMs() + Math.min(Math.max(GROUP_CPU_MS, this.#lastSyncMs), LONGEST_GROUP_CPU_MS);
      for (let job = this.#queue.take(); job; job = this.#queue.take()) {
        group.push(job);
        // The first job has failed, and everything was undone with it.
        if (!this.#connection.database.inTransaction) await this.#begin();
        outcomes.push(await this.#run(job, { written, shared, isFirst: group.length === 1 }));
        if (group.length === GROUP_LIMIT || this.#cpuMs() >= end) break;
      }
      if (this.#connection.database.inTransaction) await this.#end(shared, written);
      if (written.length > 0) await this.#sync();
    } catch (error) {
      this.#rollback();
      this.#guard.failed();
      for (const tx of written.reverse()) tx.rolledBack();
      this.syncing.end();
      const failure = error instanceof OutcomeUnknown ? error : unavailable(error);
      // If nothing could begin, the waiting jobs would fail in the same way.
      const failed = group.length > 0 ? group : this.#queue.drain();
      return failed.map((job, index) => {
        const own = outcomes[index];
        return () => job.settle(own?.ok === false ? own : { ok: false, error: failure });
      });
    }
    for (const tx of written) tx.committed();
    this.syncing.end();
    return group.map((job, index) => () => job.settle(outcomes[index] as TransactionOutcome));
  }

  /**
   * While the log is synced, the event loop does other work, but no other group begins, so commits are reported in order.
   * @throws OutcomeUnknown
   */
  async #sync(): Promise<void> {
    this.syncing.begin();
    const begun = performance.now();
    try {
      await this.#guard.sync();
    } catch (error) {
      const failure = new OutcomeUnknown("a sync of the log has failed", error);
      this.syncing.failure = failure;
      throw failure;
    }
    this.#lastSyncMs = performance.now() - begun;
  }

  async #end(shared: CommitWorks, written: OpenTx[]): Promise<void> {
    for (const work of shared.values()) await this.#runLast((tx) => work.write(tx), written);
    if (this.#last) await this.#runLast(this.#last, written);
    this.#connection.run("COMMIT");
  }

  /** This transaction comes first when commits are reported, and last when writes are rolled back. */
  async #runLast(work: (tx: Tx) => Promise<void>, written: OpenTx[]): Promise<void> {
    const tx = new OpenTx(this.#connection, this.#seals, []);
    written.unshift(tx);
    try {
      await tx.perform(work);
    } finally {
      tx.end();
    }
  }

  async #begin(): Promise<void> {
    await this.#lock();
    this.#guard.look();
  }

  /** Waits for another process's write lock without blocking the event loop. */
  async #lock(): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        this.#connection.run("BEGIN IMMEDIATE");
        return;
      } catch (error) {
        if (!BUSY.test(sqliteCode(error)) || attempt === BUSY_TRIES) throw error;
        await new Promise((resolve) => setTimeout(resolve, BUSY_RETRY_MS));
      }
    }
  }

  #rollback(): void {
    try {
      if (this.#connection.database.inTransaction) this.#connection.run("ROLLBACK");
    } catch {
      // Whatever prevents the rollback also prevents the next group, which then reports it.
    }
  }

  #refused(options: TxOptions): StoreUnavailable | null {
    const { refusal } = this.#guard;
    if (!refusal || (options.whileRefused === true && !refusal.isLost)) return null;
    return new StoreUnavailable(refusal.reason);
  }

  /** @throws only if the whole group is lost (the engine ended the transaction on its own) */
  async #run(
    { work, ledgers, options }: TransactionJob,
    { written, shared, isFirst }: { written: OpenTx[]; shared: CommitWorks; isFirst: boolean },
  ): Promise<TransactionOutcome> {
    // Checked again: the guard may have refused since the job was submitted.
    const refused = this.#refused(options);
    if (refused) return { ok: false, error: refused };
    const tx = new OpenTx(this.#connection, this.#seals, ledgers, shared);
    const hasSavepoint = !isFirst && options.single !== true;
    if (hasSavepoint) this.#connection.run("SAVEPOINT job");
    try {
      if (this.#rerunWork) await this.#rehearse(work, ledgers, shared);
      const value = await tx.perform(work);
      // The engine may have ended the transaction at an error that the work has not passed on.
      if (!this.#connection.database.inTransaction) throw new StoreUnavailable("the transaction is lost");
      if (hasSavepoint) this.#connection.run("RELEASE job");
      written.push(tx);
      return { ok: true, value };
    } catch (error) {
      tx.rolledBack();
      if (!this.#connection.database.inTransaction) throw error;
      if (hasSavepoint) {
        this.#connection.run("ROLLBACK TO job");
        this.#connection.run("RELEASE job");
      } else if (isFirst && options.single !== true) {
        this.#connection.run("ROLLBACK");
        this.#guard.failed();
      }
      return { ok: false, error: refusalOf(error) };
    } finally {
      tx.end();
    }
  }

  /** Runs the work and undoes it. */
  async #rehearse(work: TransactionJob["work"], ledgers: number[], shared: CommitWorks): Promise<void> {
    const tx = new OpenTx(this.#connection, this.#seals, [...ledgers], shared);
    this.#connection.run("SAVEPOINT rehearsal");
    try {
      await tx.perform(work);
    } finally {
      tx.end();
      tx.rolledBack();
      if (this.#connection.database.inTransaction) {
        this.#connection.run("ROLLBACK TO rehearsal");
        this.#connection.run("RELEASE rehearsal");
      }
    }
  }
}
