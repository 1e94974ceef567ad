const TRIES = 20_000;
const APART_MS = 2;

/**
 * Waits for something that no event reports, such as a closed connection. It gives up after a number of attempts, not
 * after a time, because each attempt takes longer on a busy machine.
 *
 * @throws Error if it did not happen
 */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await condition()); tries++) {
    if (tries === TRIES) throw new Error("it did not happen");
    await Bun.sleep(APART_MS);
  }
  // What was written may be read before the code that wrote it has gone on.
  await new Promise((resolve) => setImmediate(resolve));
}
