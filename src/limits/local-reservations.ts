import type { Tx } from "../store/db.ts";
import { BudgetQueues } from "./budget-queues.ts";
import type { QueueTicket, Reservation, Reservations, UnspentBudget } from "./reservations.ts";

interface Lease {
  readonly budgets: readonly string[];
  readonly amount: bigint;
}

/** The reservations of the only process that uses the store. In memory, since they end with the calls that they are for. */
export class LocalReservations implements Reservations {
  readonly #leases = new Map<string, Lease>();
  readonly #sums = new Map<string, bigint>();
  readonly #queues = new BudgetQueues();

  get leases(): number {
    return this.#leases.size;
  }

  /** The reserved part of a budget. */
  reserved(budget: string): number {
    return Number(this.#sums.get(budget) ?? 0n);
  }

  /** Length of a budget's queue. */
  waiting(budget: string): number {
    return this.#queues.waiting(budget);
  }

  withoutRoom(_: Tx, __: number, budgets: readonly UnspentBudget[], queues: boolean): string | null {
    for (const { budget, micros } of budgets) {
      if (this.reserved(budget) >= micros || (queues && this.waiting(budget) > 0)) return budget;
    }
    return null;
  }

  take(tx: Tx, { owner, budgets, amount }: Reservation): boolean {
    if (this.#leases.has(owner)) return false;
    const lease = { budgets: [...new Set(budgets)], amount: BigInt(amount) };
    this.#leases.set(owner, lease);
    for (const budget of lease.budgets) this.#add(budget, lease.amount);
    tx.onRollback(() => this.release(owner));
    return true;
  }

  /** Nothing: `release` follows. */
  settle(): void {}

  /** Nothing: the reservation ended with its process. */
  settleLost(): void {}

  release(owner: string): void {
    const lease = this.#leases.get(owner);
    if (!lease) return;
    this.#leases.delete(owner);
    for (const budget of lease.budgets) {
      this.#add(budget, -lease.amount);
      this.#queues.wakeFirst(budget);
    }
  }

  join(budget: string): QueueTicket {
    return this.#queues.join(budget);
  }

  #add(budget: string, amount: bigint): void {
    const sum = (this.#sums.get(budget) ?? 0n) + amount;
    if (sum === 0n) this.#sums.delete(budget);
    else this.#sums.set(budget, sum);
  }
}
