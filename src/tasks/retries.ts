import { Signal } from "../base/signal.ts";

/** Ends of tasks that the store has refused: each is tried again after a pause, or as soon as somebody has to know. */
export class Retries {
  /** Has all that wait tried again now. */
  readonly now = new Signal<void>();
  /** Emits when the store has refused one, again or for the first time. */
  readonly refused = new Signal<void>();
}
