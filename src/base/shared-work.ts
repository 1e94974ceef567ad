/** Work in progress, shared by all callers that need its result. A later caller begins it again. */
export class SharedWork<Result> {
  readonly #running = new Map<string, Promise<Result>>();

  /** Begins the work, or joins it if it is in progress under the same key. */
  run(key: string, work: () => Promise<Result>): Promise<Result> {
    const running = this.#running.get(key);
    if (running) return running;
    const begun = work().finally(() => this.#running.delete(key));
    this.#running.set(key, begun);
    return begun;
  }
}
