import type { Clock } from "../../../base/clock.ts";

const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 30_000;
const RESUME_WAIT_MS = 200;
/** A stream that lasted this long was healthy. */
const LASTING_MS = 60_000;

/**
 * How long to wait before a stream is opened again. The SDK reopens it each time it ends, after the time that the
 * upstream names, which may be zero.
 */
export class ListenBackoff {
  readonly #clock: Pick<Clock, "monotonic">;
  #openings = 0;
  #opened = 0;

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
  }

  /** @param resumes the stream continues a single answer, which has its own timeout */
  waitMs(resumes: boolean): number {
    if (resumes) return RESUME_WAIT_MS;
    const now = this.#clock.monotonic();
    if (now - this.#opened >= LASTING_MS) this.#openings = 0;
    this.#openings += 1;
    const wait =
      this.#openings === 1 ? 0 : Math.min(FIRST_WAIT_MS * 2 ** (this.#openings - 2), LONGEST_WAIT_MS);
    this.#opened = now + wait;
    return wait;
  }
}
