import type { Clock } from "../../../base/clock.ts";
import type { WorkKey } from "../claims.ts";

/** A difference between the claims and what a node knows counts once it is as old as a beat. */
const LASTING_MS = 2_000;

/** Finds what two sources have contradicted each other about for some time. */
export class Differences {
  readonly #clock: Pick<Clock, "monotonic">;
  #since = new Map<string, number>();

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
  }

  /** @returns those of the present differences that have lasted */
  lasting(keys: readonly WorkKey[]): readonly WorkKey[] {
    const now = this.#clock.monotonic();
    this.#since = new Map(keys.map(({ id }) => [id, this.#since.get(id) ?? now]));
    return keys.filter(({ id }) => now - (this.#since.get(id) ?? now) >= LASTING_MS);
  }

  clear(): void {
    this.#since.clear();
  }
}
