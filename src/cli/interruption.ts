import { OperatorError } from "../base/errors.ts";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * Aborts on Ctrl-C, so that no partial file is left behind.
 * @param message of the OperatorError that the signal then has as its reason
 */
export function stoppedBySignals(message: string): { readonly signal: AbortSignal; release(): void } {
  const control = new AbortController();
  const stop = () => control.abort(new OperatorError(message));
  for (const name of SIGNALS) process.once(name, stop);
  return {
    signal: control.signal,
    release() {
      for (const name of SIGNALS) process.off(name, stop);
    },
  };
}
