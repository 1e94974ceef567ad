const MINUTE_MS = 60_000;

/** `first`: report it now, with the number counted before. `counted`: only count it. */
export type TallyNotice = { readonly kind: "first"; readonly before: number } | { readonly kind: "counted" };

/**
 * Reports an event once per key and minute and counts the rest, so a flood costs memory and disk per minute rather
 * than per call. Keys beyond `keyLimit` in one minute share the key `overflow`.
 */
export class MinuteTally {
  readonly #keyLimit: number;
  #minute = -1;
  #counts = new Map<string, number>();
  #before = new Map<string, number>();

  constructor(keyLimit: number) {
    this.#keyLimit = keyLimit;
  }

  static readonly overflow = "others";

  note(key: string, now: number): TallyNotice & { readonly key: string } {
    const minute = Math.floor(now / MINUTE_MS);
    if (minute !== this.#minute) {
      this.#minute = minute;
      for (const [known, count] of this.#before)
        this.#counts.set(known, (this.#counts.get(known) ?? 0) + count);
      this.#before = this.#counts;
      this.#counts = new Map();
    }
    const counted = this.#counts.has(key) || this.#counts.size < this.#keyLimit ? key : MinuteTally.overflow;
    const seen = this.#counts.get(counted);
    if (seen !== undefined) {
      this.#counts.set(counted, seen + 1);
      return { kind: "counted", key: counted };
    }
    this.#counts.set(counted, 0);
    const before = this.#before.get(counted) ?? 0;
    this.#before.delete(counted);
    return { kind: "first", before, key: counted };
  }

  /**
   * Counts of past minutes that have not been reported, each returned once. Called from time to time, so that the end
   * of a flood is recorded too.
   */
  ended(now: number): { key: string; count: number }[] {
    const done = Math.floor(now / MINUTE_MS) === this.#minute ? [this.#before] : [this.#before, this.#counts];
    const counts: { key: string; count: number }[] = [];
    for (const map of done) {
      for (const [key, count] of map) if (count > 0) counts.push({ key, count });
      map.clear();
    }
    return counts;
  }
}
