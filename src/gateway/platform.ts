import type { Clock } from "../base/clock.ts";
import type { Ids, RandomSource } from "../base/ids.ts";
import type { Log } from "../base/log.ts";

/** The parts of the machine that all phases of startup use; replaceable in tests. */
export interface Platform {
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly ids: Ids;
  readonly log: Log;
}
