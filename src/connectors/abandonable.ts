/**
 * Waits no longer than the signal lets it: an upstream that ignores the signal is left alone. Builtin tools are waited for, so
 * that what is said of them is what they did; they look at the signal before they change anything.
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
