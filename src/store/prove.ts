import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Db } from "./db.ts";

/**
 * SQLite writes nothing if the value stays the same, so a second check in the same millisecond would prove nothing.
 */
const CHANGE = "UPDATE meta SET value = CASE value WHEN $1 THEN $1 || '+' ELSE $1 END WHERE key = 'ready'";

/**
 * Proves that a transaction can be committed and synced, without changing anything that is read elsewhere.
 * @throws StoreUnavailable
 */
export async function proveWritable(db: Pick<Db, "run">, clock: Clock): Promise<void> {
  await db.run(CHANGE, [String(clock.now())]);
}

/** Whether `proveWritable` succeeds. If not, logs why. */
export async function isWritable(db: Pick<Db, "run">, clock: Clock, log: Log): Promise<boolean> {
  try {
    await proveWritable(db, clock);
    return true;
  } catch (error) {
    log.error("the store cannot be written", { error });
    return false;
  }
}
