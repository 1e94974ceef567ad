import { ConnectorError } from "../../source.ts";
import type { UpstreamParts } from "../parts.ts";

/** Maximum number of messages without an answer in flight at once: each takes a place that a call could have. */
const MOST_OUT = 4;
/** Maximum number of messages that wait for a place: all calls may be cancelled at the same time. */
const MOST_WAITING = 64;

/** Sends messages that need no answer, a few at a time, in order. */
export class Semaphore {
  readonly #parts: UpstreamParts;
  readonly #waiting: (() => void)[] = [];
  #out = 0;

  constructor(parts: UpstreamParts) {
    this.#parts = parts;
  }

  /** @throws ConnectorError `unavailable` if too many messages wait already; whatever `work` throws */
  async run<Value>(work: () => Promise<Value>): Promise<Value> {
    if (this.#out < MOST_OUT) this.#out += 1;
    else {
      if (this.#waiting.length >= MOST_WAITING) {
        throw new ConnectorError(
          "unavailable",
          `The connector ${this.#parts.name} does not accept messages fast enough.`,
        );
      }
      await new Promise<void>((resolve) => void this.#waiting.push(resolve));
    }
    try {
      return await work();
    } finally {
      // The next waiting message takes this place.
      const next = this.#waiting.shift();
      if (next) next();
      else this.#out -= 1;
    }
  }
}
