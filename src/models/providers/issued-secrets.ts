import type { Clock } from "../../base/clock.ts";

/** How long an expired secret is still kept: the issuer's clock may be slow, and calls that were sent may still fail. */
const GRACE_MS = 10 * 60_000;
/** A server that issues a new secret for every call must not fill the memory. */
const MOST = 100;

/**
 * The secrets that were issued for a provider while the program runs, such as access tokens. They MUST be masked like
 * the configured ones, until they expire.
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

  /** The same array until another secret is issued. */
  get texts(): readonly string[] {
    return this.#texts;
  }
}
