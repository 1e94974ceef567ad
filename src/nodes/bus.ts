import type { Signal } from "../base/signal.ts";

/** A message, as JSON. It is at most `MESSAGE_BYTES` long, so it names what has changed instead of containing it. */
export type BusMessage = Readonly<Record<string, string | number | boolean | null>>;

/** The most UTF-8 bytes of a message, as JSON. */
export const MESSAGE_BYTES = 4_000;

export interface SendOptions {
  /** Sent at once instead of together with others, up to 20 ms later: for stops and cancels. */
  readonly isUrgent?: boolean;
}

/**
 * Messages between the nodes that share a store. A message is a hint to look at the store: it may arrive late, twice
 * or, after `missed`, never. So what MUST hold is decided in transactions, and nothing but speed depends on messages.
 */
export interface Bus {
  /**
   * Sends a message to all other nodes. MUST be called after the commit that it tells of (`Tx.onCommit`). While the
   * store is away, messages wait.
   * @throws RangeError if the message is too long
   */
  send(topic: string, message: BusMessage, options?: SendOptions): void;
  /**
   * Calls `handle` with each message of another node. It MUST NOT throw.
   * @returns a function that removes it
   */
  listen(topic: string, handle: (message: BusMessage) => void): () => void;
  /**
   * Emits when messages may have been missed, also before the first one: whatever is remembered of the store may be
   * outdated.
   */
  readonly missed: Signal<void>;
  /**
   * For how many milliseconds messages may have been missed. Everything that other nodes sent before has been
   * received. Infinite before the bus has listened; 0 if there is only one node.
   */
  readonly deafForMs: number;
}
