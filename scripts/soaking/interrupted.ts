/**
 * On SIGINT or SIGTERM, calls `end` once and then exits.
 * @returns a function for errors of what is interrupted. It never settles after a signal, when every error is expected;
 *   otherwise it rejects with the error
 */
export function endOnInterrupt(end: () => Promise<void>): (error: unknown) => Promise<never> {
  let ending: Promise<never> | null = null;
  for (const [signal, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const) {
    process.on(signal, () => {
      ending ??= end().then(() => process.exit(code));
    });
  }
  return (error) => ending ?? Promise.reject(error);
}
