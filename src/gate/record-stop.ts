import type { Tx } from "../store/db.ts";
import type { Call, PersonDecision } from "./call.ts";

/** A stop that is being recorded. */
export interface PendingStop {
  readonly decision: PersonDecision;
  /** Enforces the stop from memory. Lifted once the store does. */
  readonly halt: { lift(): void };
  /** Writes the stop. */
  readonly write: (tx: Tx) => Promise<void>;
  /** Ends the affected work. Resolves when that is written, or the store has refused it. */
  readonly endWork: () => Promise<void>;
}

/**
 * Records a stop and ends the affected work at the same time, so neither waits for the disk.
 * @throws whatever `write` throws, or Problem 503 `ledger_unavailable` if too many decisions wait to be recorded. The
 *   halt is then lifted, unless the stop is in effect anyway
 */
export async function applyStop(call: Call, { decision, halt, write, endWork }: PendingStop): Promise<void> {
  const recorded = call.commitDecision(decision, async (tx) => {
    await write(tx);
    tx.onCommit(() => halt.lift());
  });
  try {
    await Promise.all([recorded, endWork()]);
  } catch (error) {
    if (!call.isDeferred) halt.lift();
    throw error;
  }
}
