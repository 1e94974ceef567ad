import type { Tx } from "../store/db.ts";

/** A budget with the part of it that is not spent. */
export interface UnspentBudget {
  /** Names a budget of the workspace. */
  readonly budget: string;
  readonly micros: number;
}

/** The same amount, reserved in each of these budgets for one call. */
export interface Reservation {
  readonly workspaceId: number;
  /** Unique among all calls, including those of other nodes. */
  readonly owner: string;
  readonly budgets: readonly string[];
  /** A whole number. */
  readonly amount: number;
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
 * Reserved parts of budgets, and queues for them. A reservation is a lease with an owner: releasing it twice, or
 * without having taken it, changes nothing, so sums cannot drift. Reservations count on all nodes; a queue is that of
 * this process.
 */
export interface Reservations {
  /** Number of this process's calls with a reservation. */
  readonly leases: number;
  /**
   * The first of these budgets that has no room: at least as much is reserved as is not spent, or `queues` and others
   * wait for it here. Null if all have room. A Promise only if the store has to be asked.
   * @param tx the transaction that takes the reservation. It MUST name the workspace, so no other one takes the same room
   */
  withoutRoom(
    tx: Tx,
    workspaceId: number,
    budgets: readonly UnspentBudget[],
    queues: boolean,
  ): string | null | Promise<string | null>;
  /** Takes a reservation, unless the transaction is rolled back. False if the owner already has one here. */
  take(tx: Tx, reservation: Reservation): boolean;
  /**
   * Ends a reservation together with the charge of its call. MUST be called in that transaction, which MUST name the
   * workspace, and be followed by `release` once it is committed.
   */
  settle(tx: Tx, workspaceId: number, owner: string): void;
  /** Ends a reservation of a process that has died, in the transaction that charges its call. */
  settleLost(tx: Tx, workspaceId: number, owner: string): void;
  /** Releases this process's reservation, and makes the first in each queue try again. */
  release(owner: string): void;
  /**
   * Joins a budget's queue. MUST be called in the same turn in which `withoutRoom` named the budget, so that no release
   * is missed.
   */
  join(budget: string): QueueTicket;
}
