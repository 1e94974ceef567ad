/**
 * Calls the hooks of a transaction that has ended. What one of them throws becomes an uncaught exception and keeps no
 * other from being called: the transaction has ended all the same, and whoever waits for it must be told so.
 */
export function callHooks(hooks: readonly (() => void)[]): void {
  for (const hook of hooks) {
    try {
      hook();
    } catch (error) {
      setTimeout(() => {
        throw error;
      });
    }
  }
}
