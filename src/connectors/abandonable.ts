/**
 * Waits for `work` only until the signal aborts, then abandons it: an upstream may ignore the signal. Built-in tools
 * are always awaited, so that the recorded outcome is what they did. They check the signal before each change.
 */
export async function abandonable<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
  signal.throwIfAborted();
  let leave = (): void => {};
  const left = new Promise<never>((_resolve, reject) => {
    leave = () => reject(signal.reason);
    signal.addEventListener("abort", leave, { once: true });
  });
  try {
    return await Promise.race([work(), left]);
  } finally {
    signal.removeEventListener("abort", leave);
  }
}
