/** Notifies listeners of a change. They are called in turn and MUST NOT throw. */
export class Signal<Value> {
  readonly #listeners = new Set<(value: Value) => void>();

  /** @returns a function that removes the listener */
  listen(listener: (value: Value) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Whether anybody listens. */
  get isListened(): boolean {
    return this.#listeners.size > 0;
  }

  emit(value: Value): void {
    for (const listener of this.#listeners) listener(value);
  }
}
