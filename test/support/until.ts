const TRIES = 20_000;
const APART_MS = 2;

/**
 * Waits for what no event tells of, such as a connection that was hung up. It gives up after a number of looks, not after a
 * time: on a busy machine each of them takes longer.
 *
 * @throws Error if it did not come to pass
 */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await condition()); tries++) {
    if (tries === TRIES) throw new Error("it did not come to pass");
    await Bun.sleep(APART_MS);
  }
}
