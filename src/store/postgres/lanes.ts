import { type Ledgers, StoreUnavailable, type Tx, type TxOptions } from "../db.ts";
import { Group, type GroupParts, type Job } from "./group.ts";

/**
 * The most transactions that are committed together. The lock of a ledger's end is held for all of them, mostly while the server waits
 * for this node's next statement.
 */
const GROUP_LIMIT = 64;
/** The most transactions that wait. Each belongs to an open call, so this is far more than a node serves. */
const QUEUE_LIMIT = 20_000;

interface Lane {
  readonly group: Group;
  readonly jobs: Job[];
}

/**
 * One queue for each workspace. Transactions that arrive while the last group of their queue is being committed, or while the
 * next one waits for its lock, are committed together. Queues run at the same time, but a queue has only one
 * transaction open: more would wait for each other's lock in the database, each with a connection.
 */
export class Lanes {
  readonly #parts: GroupParts;
  readonly #lanes = new Map<string, Lane>();
  #size = 0;
  #isEnded = false;
  #onIdle: (() => void)[] = [];

  constructor(parts: GroupParts) {
    this.#parts = parts;
  }

  /** @param workspaces see `Db.tx` */
  submit<T>(workspaces: Ledgers, work: (tx: Tx) => Promise<T>, options: TxOptions): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.#isEnded) {
        reject(new StoreUnavailable("the store is closed"));
        return;
      }
      if (this.#size >= QUEUE_LIMIT) {
        reject(new StoreUnavailable(`${QUEUE_LIMIT} transactions are waiting already`));
        return;
      }
      this.#size += 1;
      this.#add(workspaces, options, {
        work,
        settle: (outcome) => (outcome.ok ? resolve(outcome.value as T) : reject(outcome.error)),
      });
    });
  }

  /** Accepts no more jobs, and resolves when none is waiting. */
  async end(): Promise<void> {
    this.#isEnded = true;
    if (this.#lanes.size === 0) return;
    await new Promise<void>((resolve) => this.#onIdle.push(resolve));
  }

  #add(workspaces: Ledgers, options: TxOptions, job: Job): void {
    const ids = idsOf(workspaces);
    // Those that append to no ledger lock nothing that they share, so workspaces need not wait for each other.
    const key = ids.length > 0 ? ids.join(" ") : `none ${options.turnOf ?? ""}`;
    const lane = this.#lanes.get(key);
    if (lane) {
      lane.jobs.push(job);
      return;
    }
    const opened: Lane = { group: new Group(this.#parts, ids), jobs: [job] };
    this.#lanes.set(key, opened);
    // Runs after the sockets of this turn have been read, so their calls share the group.
    setImmediate(() => void this.#run(key, opened));
  }

  async #run(key: string, { group, jobs }: Lane): Promise<void> {
    while (jobs.length > 0) {
      const next = jobs.splice(0, GROUP_LIMIT);
      const outcomes = await group.commit(next, () => {
        next.push(...jobs.splice(0, GROUP_LIMIT - next.length));
      });
      this.#size -= next.length;
      for (const [index, job] of next.entries()) {
        const outcome = outcomes[index];
        if (outcome) job.settle(outcome);
      }
    }
    this.#lanes.delete(key);
    if (this.#lanes.size === 0) for (const resolve of this.#onIdle.splice(0)) resolve();
  }
}

/** In ascending order, without repetitions. */
function idsOf(workspaces: Ledgers): readonly number[] {
  if (workspaces === null) return [];
  if (typeof workspaces === "number") return [workspaces];
  return [...new Set(workspaces)].sort((a, b) => a - b);
}
