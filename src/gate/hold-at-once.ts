import type { Tx } from "../store/db.ts";
import type { Call, Decision } from "./call.ts";

/** A stop on its way into the store. */
export interface HeldStop {
  readonly decision: Decision;
  /** By which memory holds it already; lifted once the store does. */
  readonly halt: { lift(): void };
  /** Writes it. */
  readonly write: (tx: Tx) => Promise<void>;
  /** Ends the work that it is about; resolves when that is written, or the store has refused it. */
  readonly endWork: () => Promise<void>;
}

/**
 * Records a stop while the work that it ends is being ended: it waits for nobody's disk.
 * @throws what `write` throws, or Problem 503 `ledger_unavailable` where too many decisions wait to be recorded; the halt is
 *   lifted then, unless the stop holds all the same
 */
export async function holdAtOnce(call: Call, { decision, halt, write, endWork }: HeldStop): Promise<void> {
  const recorded = call.commitDecision(decision, async (tx) => {
    await write(tx);
    tx.onCommit(() => halt.lift());
  });
  try {
    await Promise.all([recorded, endWork()]);
  } catch (error) {
    if (!call.isPutOff) halt.lift();
    throw error;
  }
}
