interface Lease {
  readonly budgets: readonly string[];
  readonly amount: bigint;
}

/** A place in the line before a budget. */
export interface Place {
  readonly budget: string;
  /**
   * Resolves when this one is to look again: it is first in line, and something was given back, or it became the first, since
   * it looked last. One waits at a time. Rejects with the signal's reason.
   */
  turn(signal: AbortSignal): Promise<void>;
  /** Lets it look again for another reason. Changes nothing where others stand before it. */
  wake(): void;
  /** Gives the place up, on whatever way out. Leaving twice changes nothing. */
  leave(): void;
}

/**
 * What is reserved of budgets, and who waits until something is given back, first come, first served. A reservation is a lease
 * with an owner: releasing twice, or what was never taken, changes nothing, so that a sum can never drift. Amounts are
 * whole numbers, added as such however large they are. Memory only, and synchronous.
 */
export class Reservations {
  readonly #leases = new Map<string, Lease>();
  readonly #sums = new Map<string, bigint>();
  readonly #lines = new Map<string, Set<Waiter>>();

  /** How many leases are held, over all budgets. */
  get leases(): number {
    return this.#leases.size;
  }

  /** What is reserved of a budget. */
  reserved(budget: string): number {
    return Number(this.#sums.get(budget) ?? 0n);
  }

  /** Reserves the same amount of each of the budgets. False when the owner holds a reservation already. */
  take(owner: string, budgets: readonly string[], amount: number): boolean {
    if (this.#leases.has(owner)) return false;
    const lease = { budgets: [...new Set(budgets)], amount: BigInt(amount) };
    this.#leases.set(owner, lease);
    for (const budget of lease.budgets) this.#add(budget, lease.amount);
    return true;
  }

  /** Gives back what the owner holds, and lets the first of each line look again. */
  release(owner: string): void {
    const lease = this.#leases.get(owner);
    if (!lease) return;
    this.#leases.delete(owner);
    for (const budget of lease.budgets) {
      this.#add(budget, -lease.amount);
      this.#wakeFirst(budget);
    }
  }

  /** How many wait before a budget. */
  waiting(budget: string): number {
    return this.#lines.get(budget)?.size ?? 0;
  }

  /**
   * Stands at the end of a budget's line. To be called in the same turn in which the caller has seen that it has to wait:
   * whatever is given back from then on is noticed.
   */
  join(budget: string): Place {
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
  /** It was woken, and has not looked since. */
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
