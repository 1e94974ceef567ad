interface Lease {
  readonly budgets: readonly string[];
  readonly amount: bigint;
}

/** A place in a budget's queue. */
export interface QueueTicket {
  readonly budget: string;
  /**
   * Resolves when its owner should try again: it is first in the queue, and something was released or it became first
   * since its last try. One wait at a time. Rejects with the signal's reason.
   */
  turn(signal: AbortSignal): Promise<void>;
  /** Makes the first caller in the queue try again for another reason. Has no effect on others. */
  wake(): void;
  /** Leaves the queue. Leaving twice changes nothing. */
  leave(): void;
}

/**
 * Reserved parts of budgets, and first-come-first-served queues for them. A reservation is a lease with an owner:
 * releasing it twice, or without having taken it, changes nothing, so sums cannot drift. Amounts are whole numbers.
 * In memory, and synchronous.
 */
export class Reservations {
  readonly #leases = new Map<string, Lease>();
  readonly #sums = new Map<string, bigint>();
  readonly #lines = new Map<string, Set<Waiter>>();

  /** Number of leases over all budgets. */
  get leases(): number {
    return this.#leases.size;
  }

  /** The reserved part of a budget. */
  reserved(budget: string): number {
    return Number(this.#sums.get(budget) ?? 0n);
  }

  /** Reserves the same amount in each budget. False if the owner already has a reservation. */
  take(owner: string, budgets: readonly string[], amount: number): boolean {
    if (this.#leases.has(owner)) return false;
    const lease = { budgets: [...new Set(budgets)], amount: BigInt(amount) };
    this.#leases.set(owner, lease);
    for (const budget of lease.budgets) this.#add(budget, lease.amount);
    return true;
  }

  /** Releases the owner's reservation, and makes the first in each queue try again. */
  release(owner: string): void {
    const lease = this.#leases.get(owner);
    if (!lease) return;
    this.#leases.delete(owner);
    for (const budget of lease.budgets) {
      this.#add(budget, -lease.amount);
      this.#wakeFirst(budget);
    }
  }

  /** Length of a budget's queue. */
  waiting(budget: string): number {
    return this.#lines.get(budget)?.size ?? 0;
  }

  /**
   * Joins a budget's queue. MUST be called in the same turn in which the caller found that it has to wait, so that no
   * release is missed.
   */
  join(budget: string): QueueTicket {
    const line = this.#lines.get(budget) ?? new Set<Waiter>();
    this.#lines.set(budget, line);
    const waiter = new Waiter();
    line.add(waiter);
    const isFirst = (): boolean => firstOf(line) === waiter;
    return {
      budget,
      turn: (signal) => waiter.turn(signal),
      wake: () => {
        if (isFirst()) waiter.wake();
      },
      leave: () => {
        const wasFirst = isFirst();
        if (!line.delete(waiter)) return;
        if (line.size === 0) this.#lines.delete(budget);
        else if (wasFirst) this.#wakeFirst(budget);
      },
    };
  }

  #add(budget: string, amount: bigint): void {
    const sum = (this.#sums.get(budget) ?? 0n) + amount;
    if (sum === 0n) this.#sums.delete(budget);
    else this.#sums.set(budget, sum);
  }

  #wakeFirst(budget: string): void {
    const line = this.#lines.get(budget);
    if (line) firstOf(line)?.wake();
  }
}

function firstOf(line: ReadonlySet<Waiter>): Waiter | undefined {
  const [first] = line;
  return first;
}

class Waiter {
  /** Whether it was woken and has not tried again since. */
  #isDue = false;
  #resume: (() => void) | null = null;

  wake(): void {
    this.#isDue = true;
    this.#resume?.();
  }

  async turn(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (!this.#isDue) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const resume = (): void => resolve();
      this.#resume = resume;
      signal.addEventListener("abort", resume, { once: true });
      await promise;
      signal.removeEventListener("abort", resume);
      this.#resume = null;
      signal.throwIfAborted();
    }
    this.#isDue = false;
  }
}
