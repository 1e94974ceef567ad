import { ConnectorError } from "../../source.ts";
import type { UpstreamParts } from "../parts.ts";

/** Messages without an answer that may be out at once: each takes a place that a call could have. */
const MOST_OUT = 4;
/** And that may wait for that: all calls may be cancelled at the same time. */
const MOST_WAITING = 64;

/** Tells an upstream what needs no answer, a few messages at a time, in the order in which they came. */
export class Semaphore {
  readonly #parts: UpstreamParts;
  readonly #waiting: (() => void)[] = [];
  #out = 0;

  constructor(parts: UpstreamParts) {
    this.#parts = parts;
  }

  /** @throws ConnectorError `unavailable` where too much waits already; what `work` throws */
  async run<Value>(work: () => Promise<Value>): Promise<Value> {
    if (this.#out < MOST_OUT) this.#out += 1;
    else {
      if (this.#waiting.length >= MOST_WAITING) {
        throw new ConnectorError(
          "unavailable",
          `The connector ${this.#parts.name} does not take in what it is told.`,
        );
      }
      await new Promise<void>((resolve) => void this.#waiting.push(resolve));
    }
    try {
      return await work();
    } finally {
      // Whoever is next takes the place over.
      const next = this.#waiting.shift();
      if (next) next();
      else this.#out -= 1;
    }
  }
}
