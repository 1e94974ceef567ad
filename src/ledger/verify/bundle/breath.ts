/** Milliseconds of work at once: a page that stands still for longer feels broken. */
const AT_ONCE_MS = 30;

/** Lets others have their turn by time, since what an entry or a chunk costs is up to who made the bundle: in a browser, the page. */
export class Breath {
  #since = performance.now();

  get isDue(): boolean {
    return performance.now() - this.#since >= AT_ONCE_MS;
  }

  async take(): Promise<void> {
    await new Promise<void>((resolve) => setTimeout(resolve));
    this.#since = performance.now();
  }
}
