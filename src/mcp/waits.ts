/** Clients of one workspace that may wait for tasks at once: each holds a stream, and its task's events. */
export const WAITS_PER_WORKSPACE = 1_000;

interface Wait {
  readonly workspaceId: number;
  readonly end: () => void;
  readonly ended: PromiseWithResolvers<void>;
}

/**
 * Who waits for a task's end, be it an agent's or a call that a person has to approve, for as long as that takes: told first
 * when the process stops, to be answered still.
 */
export class Waits {
  readonly #all = new Set<Wait>();
  #stopped = false;

  get stopped(): boolean {
    return this.#stopped;
  }

  /**
   * @param end Ends the wait, since the process stops
   * @returns to be called when the wait is over; null where too many wait, or the process stops
   */
  add(workspaceId: number, end: () => void): (() => void) | null {
    if (this.#stopped) return null;
    // Far fewer wait than the limit: counting is a look at the size.
    const isMany = this.#all.size >= WAITS_PER_WORKSPACE;
    const own = isMany ? [...this.#all].filter((wait) => wait.workspaceId === workspaceId).length : 0;
    if (own >= WAITS_PER_WORKSPACE) return null;
    const wait = { workspaceId, end, ended: Promise.withResolvers<void>() };
    this.#all.add(wait);
    return () => {
      this.#all.delete(wait);
      wait.ended.resolve();
    };
  }

  /** Ends all, and resolves when their answers are on their way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    const waits = [...this.#all];
    for (const { end } of waits) end();
    await Promise.all(waits.map(({ ended }) => ended.promise));
    // Answers take a few turns of promises from there to their streams.
    if (waits.length > 0) await new Promise((resolve) => setImmediate(resolve));
  }
}
