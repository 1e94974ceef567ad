import { Pool } from "./driver.ts";
import { refusalOf } from "./errors.ts";
import { TIMEOUTS } from "./limits.ts";
import { Listener, type ListenerOptions } from "./listen.ts";

export interface NotificationsOptions
  extends Pick<ListenerOptions, "channel" | "onMessage" | "onListening" | "onLost"> {
  /** A direct URL: a pooler delivers no notifications. */
  readonly url: string;
}

/** A notification that is not passed on at once is sent again, on another connection. */
const IMPATIENT = { connectMs: 1_500, answerMs: 1_500 };

/** The most bytes of a notification's payload. */
export const PAYLOAD_BYTES = 7_999;

/** Notifications between the processes that use a database, outside of transactions. */
export class Notifications {
  readonly #channel: string;
  readonly #pool: Pool;
  readonly #listener: Listener;

  constructor({ url, channel, ...handlers }: NotificationsOptions) {
    this.#channel = channel;
    const timeouts = { ...TIMEOUTS, ...IMPATIENT };
    this.#pool = new Pool({ url, mode: { isPooled: true }, timeouts, max: 1 });
    this.#listener = new Listener({ url, channel, timeouts: TIMEOUTS, ...handlers });
  }

  /** See `Listener.deafForMs`. */
  get deafForMs(): number {
    return this.#listener.deafForMs;
  }

  /** See `Listener.listening`. */
  listening(withinMs: number): Promise<void> {
    return this.#listener.listening(withinMs);
  }

  /**
   * Resolves once the server has passed the payload on.
   * @throws StoreUnavailable; it may have been passed on nevertheless
   */
  async notify(payload: string): Promise<void> {
    try {
      const connection = await this.#pool.take();
      let isUsable = false;
      try {
        await connection.send("SELECT pg_notify($1, $2)", [this.#channel, payload]);
        isUsable = true;
      } finally {
        connection.release(isUsable);
      }
    } catch (error) {
      throw refusalOf(error);
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.#listener.close(), this.#pool.close()]);
  }
}
