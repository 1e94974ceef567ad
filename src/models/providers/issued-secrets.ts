import type { Clock } from "../../base/clock.ts";

/**
 * How long an expired secret is still remembered: the issuer's clock may be slow, and calls in flight may still fail.
 */
const GRACE_MS = 10 * 60_000;
/** Maximum number of secrets kept, so that a server that issues a new one for every call does not exhaust memory. */
const MOST = 100;

/**
 * The secrets issued for a provider while the program runs, such as access tokens. Until they expire, they MUST be
 * masked like configured secrets.
 */
export class IssuedSecrets {
  readonly #clock: Clock;
  #secrets: readonly { readonly text: string; readonly until: number }[] = [];
  #texts: readonly string[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param until milliseconds since the Unix epoch */
  add(text: string, until: number): void {
    const now = this.#clock.now();
    const kept = this.#secrets.filter((each) => each.until + GRACE_MS > now);
    this.#secrets = [...kept, { text, until }].slice(-MOST);
    this.#texts = this.#secrets.map((each) => each.text);
  }

  /** Returns the same array until another secret is issued. */
  get texts(): readonly string[] {
    return this.#texts;
  }
}
