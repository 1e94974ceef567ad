import { residentBytesOf } from "../processes/usage.ts";
import type { Target } from "../workshop.ts";

const LOOK_MS = 100;
const BYTES_PER_MB = 1_000_000;

/** Watches a server's resident memory, in megabytes, to know the most that it had. */
export class MemoryWatch {
  readonly #pids: readonly number[];
  readonly #timer: Timer;
  #peak: number | null = 0;

  constructor({ pid, otherPids = [] }: Target) {
    this.#pids = [pid, ...otherPids];
    this.#timer = setInterval(() => this.#look(), LOOK_MS);
  }

  /** Null if this system does not report it. */
  now(): number | null {
    const bytes = residentBytesOf(this.#pids);
    return bytes === null ? null : bytes / BYTES_PER_MB;
  }

  /** @returns the most since the beginning */
  end(): number | null {
    this.#look();
    clearInterval(this.#timer);
    return this.#peak;
  }

  #look(): void {
    const now = this.now();
    this.#peak = this.#peak === null || now === null ? null : Math.max(this.#peak, now);
  }
}
