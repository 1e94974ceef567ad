/** Maximum number of clients per workspace that wait for tasks. Each holds a stream and its task's events. */
export const WAITS_PER_WORKSPACE = 1_000;

interface Wait {
  readonly workspaceId: number;
  readonly end: () => void;
  readonly ended: PromiseWithResolvers<void>;
}

/**
 * Clients waiting for a task to end, whether an agent's task or a call that a person must approve, for as long as
 * that takes. When the process stops, they are notified first, so that they can still be answered.
 */
export class TaskWaiters {
  readonly #all = new Set<Wait>();
  #stopped = false;

  get stopped(): boolean {
    return this.#stopped;
  }

  /**
   * @param end ends the wait because the process stops
   * @returns a function to call when the wait is over; null if too many are waiting or the process stops
   */
  add(workspaceId: number, end: () => void): (() => void) | null {
    if (this.#stopped) return null;
    // Usually far fewer than the limit are waiting, so checking the total is enough.
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

  /** Ends all waits, and resolves when their answers are being sent. */
  async stop(): Promise<void> {
    this.#stopped = true;
    const waits = [...this.#all];
    for (const { end } of waits) end();
    await Promise.all(waits.map(({ ended }) => ended.promise));
    // Answers need a few more turns to reach their streams.
    if (waits.length > 0) await new Promise((resolve) => setImmediate(resolve));
  }
}
