import type { QueueTicket } from "./reservations.ts";

/** First-come-first-served queues of this process's calls, one for each budget that somebody waits for. In memory. */
export class BudgetQueues {
  readonly #lines = new Map<string, Set<Waiter>>();

  /** Length of a budget's queue. */
  waiting(budget: string): number {
    return this.#lines.get(budget)?.size ?? 0;
  }

  /** See `Reservations.join`. */
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
        else if (wasFirst) this.wakeFirst(budget);
      },
    };
  }

  wakeFirst(budget: string): void {
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
