/** Milliseconds of continuous work. A page that does not respond for longer than this feels broken. */
const AT_ONCE_MS = 30;

/**
 * Yields to other work (in a browser, the page) by elapsed time. The cost of an entry or a chunk would be a poor
 * measure, because whoever made the bundle controls it.
 */
export class LoopYield {
  #since = performance.now();

  get isDue(): boolean {
    return performance.now() - this.#since >= AT_ONCE_MS;
  }

  async take(): Promise<void> {
    await new Promise<void>((resolve) => setTimeout(resolve));
    this.#since = performance.now();
  }
}
