import { Signal } from "../../base/signal.ts";

/**
 * Triggers retries of task ends that the store has refused. Each is tried again after a pause, or as soon as its
 * result is needed.
 */
export class EndingRetries {
  /** Makes all waiting ends retry now. */
  readonly now = new Signal<void>();
  /** Emits whenever the store refuses an end, the first time or again. */
  readonly refused = new Signal<void>();
}
