/** A value whose memory is counted. */
export interface Counted {
  /** Estimated number of bytes of memory. Changed only by `WeakCache.grow`. */
  bytes: number;
}

/**
 * Values derived from objects. Each is kept no longer than its object, and all together take a limited number of bytes:
 * whenever new values have taken half of them, values that were not used since the last time are dropped. A tenant that
 * adds many values therefore does not displace those in use.
 */
export class WeakCache<Key extends WeakKey, Value extends Counted> {
  readonly #half: number;
  #recent = new WeakMap<Key, Value>();
  /** Values move back to `#recent` when they are used. */
  #older = new WeakMap<Key, Value>();
  /** Bytes of `#recent`. Includes values whose objects are gone. */
  #bytes = 0;

  constructor(mostBytes: number) {
    this.#half = mostBytes / 2;
  }

  get(key: Key): Value | undefined {
    const recent = this.#recent.get(key);
    if (recent) return recent;
    const older = this.#older.get(key);
    if (older) this.add(key, older);
    return older;
  }

  add(key: Key, value: Value): void {
    this.#recent.set(key, value);
    this.#count(value.bytes);
  }

  /** Counts bytes that a value has gained or, if negative, has released. */
  grow(value: Value, bytes: number): void {
    value.bytes += bytes;
    this.#count(bytes);
  }

  #count(bytes: number): void {
    this.#bytes = Math.max(0, this.#bytes + bytes);
    if (this.#bytes <= this.#half) return;
    this.#older = this.#recent;
    this.#recent = new WeakMap();
    this.#bytes = 0;
  }
}
