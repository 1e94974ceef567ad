import { type LedgerTail, OutcomeUnknown, StoreUnavailable, type Tx } from "../db.ts";
import type { RowSeals } from "../seals/seals.ts";
import type { CommitMarks, Mark } from "./commit-marks.ts";
import { type Mode, type Pool, transactionSettings } from "./driver.ts";
import {
  EngineError,
  hasWaited,
  isAway,
  isUnavailable,
  mayBeRepeated,
  provesRollback,
  refusalOf,
  unavailable,
} from "./errors.ts";
import type { Timeouts } from "./limits.ts";
import { type CommitWorks, OpenTx } from "./open-tx.ts";
import { repeat } from "./repeat.ts";
import { Session } from "./session.ts";
import { lockTails } from "./tails.ts";

/** A piece of work that waits for its transaction. */
export interface Job {
  readonly work: (tx: Tx) => Promise<unknown>;
  readonly settle: (outcome: Outcome) => void;
}

export type Outcome =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly error: unknown };

export interface GroupParts {
  readonly pool: Pool;
  readonly mode: Mode;
  readonly timeouts: Timeouts;
  readonly seals: RowSeals;
  readonly marks: CommitMarks;
  /** What runs at the end of each transaction: see `Db.beforeCommit`. */
  readonly beforeCommit: () => ((tx: Tx) => Promise<void>) | null;
  /** What runs once the tails are locked: see `Db.afterLock`. */
  readonly afterLock: () => ((tx: Tx) => Promise<void> | undefined) | null;
}

/** A transaction that was committed, or in which all jobs failed before they had written. */
interface Committed {
  readonly outcomes: ReadonlyMap<Job, Outcome>;
  /** The transactions whose commit hooks are called, in order. */
  readonly opened: readonly OpenTx[];
}

/** A job threw after it had written, so everything was undone. */
class JobThrew extends Error {
  readonly job: Job;
  readonly error: unknown;

  constructor(job: Job, error: unknown) {
    super("a job has failed");
    this.job = job;
    this.error = error;
  }
}

/** What is written before the commit has failed. None of the jobs is to blame. */
class LastWorkFailed extends Error {
  constructor(cause: unknown) {
    super("what is written before each commit has failed", { cause });
  }
}

/** After this many jobs of a group have thrown, the others run one by one, so that not all are repeated each time. */
const MOST_THROWN = 3;

/**
 * Commits jobs in one transaction. If a statement fails, PostgreSQL refuses all that follow it, so everything is rolled
 * back and the jobs run one by one. If a job throws by itself after it has written, the others run again without it.
 *
 * With a savepoint for each job nothing would be repeated, but each job would take two statements more.
 */
export class Group {
  readonly #parts: GroupParts;
  readonly #workspaceIds: readonly number[];

  /** @param workspaceIds the workspaces to whose ledgers the jobs append, in ascending order */
  constructor(parts: GroupParts, workspaceIds: readonly number[]) {
    this.#parts = parts;
    this.#workspaceIds = workspaceIds;
  }

  /**
   * @param join called once the ledgers are locked: adds to `jobs` those that arrived while it waited, perhaps for another
   *   node's transaction
   * @returns the outcomes of the jobs, in their order
   */
  async commit(jobs: readonly Job[], join: () => void): Promise<readonly Outcome[]> {
    const known = new Map<Job, Outcome>();
    const done: OpenTx[] = [];
    await this.#commitTogether(jobs, join, known, done);
    for (const tx of done) tx.committed();
    let away: Outcome | null = null;
    for (const job of jobs) {
      if (known.has(job)) continue;
      // Each further job would wait as long.
      const outcome: Outcome = away ?? (await this.#commitAlone(job));
      if (!outcome.ok && isAway(causeOf(outcome.error))) away = outcome;
      known.set(job, outcome);
    }
    return jobs.map((job) => outcomeOf(known, job));
  }

  /** Sets the outcomes of all jobs if they can be committed together, else of those that threw by themselves. */
  async #commitTogether(
    jobs: readonly Job[],
    join: () => void,
    known: Map<Job, Outcome>,
    done: OpenTx[],
  ): Promise<void> {
    for (let thrown = 0; thrown <= MOST_THROWN; thrown++) {
      const isFirst = thrown === 0;
      const left = isFirst ? jobs : jobs.filter((job) => !known.has(job));
      if (left.length <= 1 && !isFirst) return;
      try {
        const committed = await this.#repeat(left, isFirst ? join : joinNothing);
        for (const [job, outcome] of committed.outcomes) known.set(job, outcome);
        done.push(...committed.opened);
        return;
      } catch (error) {
        if (error instanceof JobThrew) {
          known.set(error.job, { ok: false, error: refusalOf(error.error) });
          continue;
        }
        const isRefused = error instanceof LastWorkFailed || error instanceof StoreUnavailable;
        // Each of them would wait as long by itself.
        if (isRefused || isAway(error) || hasWaited(error)) {
          const outcome: Outcome = { ok: false, error: refusalOfAll(error) };
          for (const job of left) known.set(job, outcome);
        } else if (left.length === 1) {
          for (const job of left) known.set(job, { ok: false, error: refusalOf(error) });
        }
        return;
      }
    }
  }

  async #commitAlone(job: Job): Promise<Outcome> {
    let committed: Committed;
    try {
      committed = await this.#repeat([job], joinNothing);
    } catch (error) {
      if (error instanceof JobThrew) return { ok: false, error: refusalOf(error.error) };
      return { ok: false, error: error instanceof LastWorkFailed ? refusalOfAll(error) : refusalOf(error) };
    }
    for (const tx of committed.opened) tx.committed();
    return outcomeOf(committed.outcomes, job);
  }

  #repeat(jobs: readonly Job[], join: () => void): Promise<Committed> {
    const limitMs = this.#parts.timeouts.retryMs;
    const mayRepeat = (error: unknown) => !(error instanceof OutcomeUnknown) && mayBeRepeated(causeOf(error));
    // Those that joined a later attempt would have none of their own left.
    return repeat({ limitMs, mayRepeat }, (attempt) =>
      this.#attempt(jobs, attempt === 1 ? join : joinNothing),
    );
  }

  /**
   * Runs the jobs in one transaction, and commits it.
   * @throws JobThrew, LastWorkFailed, or the error of the first statement that failed. Then nothing is kept.
   * @throws OutcomeUnknown
   */
  async #attempt(jobs: readonly Job[], join: () => void): Promise<Committed> {
    const { pool, marks } = this.#parts;
    const session = new Session(await pool.take());
    const mark = marks.next();
    const opened: OpenTx[] = [];
    try {
      const outcomes = await this.#run(session, jobs, join, opened, mark);
      mark.committed();
      session.release(true);
      return { outcomes, opened };
    } catch (error) {
      if (!(error instanceof OutcomeUnknown)) mark.rolledBack();
      await abandon(session);
      for (const tx of opened.reverse()) tx.rolledBack();
      throw error;
    }
  }

  async #run(
    session: Session,
    jobs: readonly Job[],
    join: () => void,
    opened: OpenTx[],
    mark: Mark,
  ): Promise<Map<Job, Outcome>> {
    const { mode, timeouts } = this.#parts;
    const shared: CommitWorks = new Map();
    const outcomes = new Map<Job, Outcome>();
    // Under the lock, each statement sees what other nodes committed before. Without one, a transaction that changes
    // what another one has changed since it began fails, and is repeated.
    const isolation = this.#workspaceIds.length > 0 ? "READ COMMITTED" : "REPEATABLE READ";
    const begun = session.begin(isolation, mode.isPooled ? transactionSettings(timeouts) : null);
    // Sent along, to save a round trip: without a transaction, it would lock and write nothing.
    const [lockedTails] = await Promise.all([lockTails(session, this.#workspaceIds, begun), begun]);
    const parts = { seals: this.#parts.seals, lockedTails };
    if (lockedTails.size > 0) await this.#runFirst(session, lockedTails);
    // Without a lock, the transaction may see the state of before those that arrive now.
    if (this.#workspaceIds.length > 0) join();
    for (const job of jobs) {
      const tx = new OpenTx(session, { ...parts, ledgers: this.#workspaceIds, shared });
      opened.push(tx);
      const outcome = await runJob(session, job, tx, jobs.length === 1);
      outcomes.set(job, outcome);
      if (!outcome.ok) opened.pop();
    }
    if (opened.length === 0) {
      await session.rollback();
      return outcomes;
    }
    session.endJobs();
    await this.#runLast(session, shared, opened);
    if (session.writes > 0) mark.write(session);
    await this.#end(session, mark);
    return outcomes;
  }

  async #runFirst(session: Session, lockedTails: ReadonlyMap<number, LedgerTail>): Promise<void> {
    const work = this.#parts.afterLock();
    if (!work) return;
    const { seals } = this.#parts;
    const tx = new OpenTx(session, { seals, ledgers: this.#workspaceIds, lockedTails, shared: null });
    try {
      await work(tx);
    } finally {
      tx.end();
    }
  }

  /** These transactions come first when commits are reported, and last when writes are rolled back. */
  async #runLast(session: Session, shared: CommitWorks, opened: OpenTx[]): Promise<void> {
    const last = this.#parts.beforeCommit();
    const works = [...shared.values()].map((work) => (tx: Tx) => work.write(tx));
    for (const work of last ? [...works, last] : works) {
      const { seals } = this.#parts;
      const tx = new OpenTx(session, { seals, ledgers: [], lockedTails: new Map(), shared: null });
      opened.unshift(tx);
      try {
        await work(tx);
        if (session.failure) throw session.failure.error;
      } catch (error) {
        throw lastErrorOf(session, error);
      } finally {
        tx.end();
      }
    }
  }

  /** Returns if the transaction was committed. */
  async #end(session: Session, mark: Mark): Promise<void> {
    const { pool, timeouts } = this.#parts;
    try {
      const command = await session.commit();
      if (command !== "COMMIT") throw new EngineError(`COMMIT was answered with ${command}`, "25P02");
    } catch (error) {
      const isKnown = !mark.isWritten || provesRollback(session.failure?.error ?? error);
      // Before settling, which takes another connection: all of them may have been lost at once.
      if (!isKnown) session.release(false);
      const outcome = isKnown ? "lost" : await mark.settle(pool, timeouts.settleMs);
      if (outcome === "lost") throw lastErrorOf(session, error);
    }
  }
}

function joinNothing(): void {}

/** @throws JobThrew if the job failed after it had written; the error of the first statement that failed */
async function runJob(session: Session, job: Job, tx: OpenTx, isAlone: boolean): Promise<Outcome> {
  const { writes } = session;
  try {
    const value = await job.work(tx);
    // The job may not have passed the error on, or the statement may be one of an earlier job.
    if (session.failure) throw session.failure.error;
    return { ok: true, value };
  } catch (error) {
    const failure = session.failure?.error;
    if (failure !== undefined && (!isAlone || isUnavailable(failure))) throw failure;
    if (failure !== undefined || session.writes > writes) throw new JobThrew(job, error);
    tx.rolledBack();
    return { ok: false, error };
  } finally {
    tx.end();
  }
}

/** Ends a transaction that failed. */
async function abandon(session: Session): Promise<void> {
  if (session.isReleased) return;
  let isRolledBack = false;
  try {
    await session.rollback();
    isRolledBack = true;
  } catch (error) {
    // The connection is lost, and the server rolls back what it had not committed.
    if (!(error instanceof EngineError)) throw error;
  } finally {
    session.release(isRolledBack);
  }
}

/** The error of a transaction whose jobs have ended: the first statement that failed may still be one of theirs. */
function lastErrorOf(session: Session, error: unknown): unknown {
  const { failure } = session;
  return failure && !failure.isLast ? failure.error : new LastWorkFailed(failure?.error ?? error);
}

function refusalOfAll(error: unknown): StoreUnavailable {
  return error instanceof StoreUnavailable ? error : unavailable(causeOf(error));
}

function outcomeOf(known: ReadonlyMap<Job, Outcome>, job: Job): Outcome {
  const outcome = known.get(job);
  if (!outcome) throw new Error("a job has no outcome");
  return outcome;
}

/** The engine's error, which others may have wrapped. */
function causeOf(error: unknown): unknown {
  const isWrapped = error instanceof LastWorkFailed || error instanceof StoreUnavailable;
  return isWrapped && error.cause !== undefined ? causeOf(error.cause) : error;
}
