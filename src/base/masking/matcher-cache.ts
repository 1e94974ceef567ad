import { PatternMatcher } from "./pattern-matcher.ts";

/**
 * Maximum number of bytes of all matchers. One for an ordinary connector takes a few kilobytes, one for the longest
 * secrets 10 MB.
 */
const MOST_BYTES = 64 * 1024 * 1024;

/** Keeps the matchers that were used last, within a fixed amount of memory. Others are made again when needed. */
export class MatcherCache {
  readonly #mostBytes: number;
  /** Least recently used first. */
  readonly #matchers = new Map<object, PatternMatcher>();
  #bytes = 0;

  constructor(mostBytes: number = MOST_BYTES) {
    this.#mostBytes = mostBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** @param key identifies the patterns */
  get(key: object, patterns: () => readonly string[]): PatternMatcher {
    const kept = this.#matchers.get(key);
    const matcher = kept ?? new PatternMatcher(patterns());
    if (kept) this.#matchers.delete(key);
    else this.#bytes += matcher.bytes;
    this.#matchers.set(key, matcher);
    for (const [oldest, { bytes }] of this.#matchers) {
      if (this.#bytes <= this.#mostBytes || oldest === key) break;
      this.#matchers.delete(oldest);
      this.#bytes -= bytes;
    }
    return matcher;
  }
}
