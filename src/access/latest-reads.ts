/**
 * Reads of the latest state, by key. A read that is already under way may have seen an earlier state, so those that ask
 * for the latest one in the meantime share the read that follows it.
 */
export class LatestReads<Key> {
  readonly #read: (key: Key) => Promise<void>;
  readonly #running = new Map<Key, Promise<void>>();
  readonly #following = new Map<Key, Promise<void>>();

  constructor(read: (key: Key) => Promise<void>) {
    this.#read = read;
  }

  /** Resolves after a read that began no earlier than now. Rejects with its error. */
  latest(key: Key): Promise<void> {
    const running = this.#running.get(key);
    if (!running) return this.#start(key);
    const following =
      this.#following.get(key) ??
      running.then(ignore, ignore).then(() => {
        this.#following.delete(key);
        return this.#start(key);
      });
    this.#following.set(key, following);
    return following;
  }

  #start(key: Key): Promise<void> {
    const started = this.#read(key).finally(() => this.#running.delete(key));
    this.#running.set(key, started);
    return started;
  }
}

/** Whoever asked for the read gets its error. */
function ignore(): void {}
