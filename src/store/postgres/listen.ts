import { connect, type SingleConnection } from "./driver.ts";
import { EngineError } from "./errors.ts";
import type { Timeouts } from "./limits.ts";

export interface ListenerOptions {
  /** A direct URL: a pooler delivers no notifications. */
  readonly url: string;
  readonly timeouts: Timeouts;
  /** The channel, of lower-case letters and underscores. */
  readonly channel: string;
  /** Called with the payload of each message. MUST NOT throw. */
  readonly onMessage: (payload: string) => void;
  /** Called whenever it begins to listen. Messages that were sent before are lost. MUST NOT throw. */
  readonly onListening: () => void;
  /** Called whenever the connection is lost, or cannot be established. MUST NOT throw. */
  readonly onLost: (error: unknown) => void;
  /** How often the listener sends itself a message, in milliseconds. */
  readonly testMs?: number;
  /** If that message does not come back within this time, the connection is replaced. */
  readonly deafMs?: number;
  readonly now?: () => number;
}

const TEST_MS = 500;
const DEAF_MS = 1_000;
const PAUSE_MS = 50;
const WAIT_MS = 5;

/**
 * One connection that receives messages from all nodes. It sends itself a message twice a second, because a connection
 * whose packets are lost looks like one without messages. After a fault it connects again until it is closed.
 */
export class Listener {
  readonly #options: ListenerOptions;
  /** Its messages to itself have a channel of their own, so other nodes do not receive them. */
  readonly #ownChannel = `gatehouse_${crypto.randomUUID().replaceAll("-", "")}`;
  readonly #closing = Promise.withResolvers<void>();
  readonly #now: () => number;
  #isClosed = false;
  #heardAt = Number.NEGATIVE_INFINITY;
  #tests = 0;
  #onTest: (payload: string) => void = () => {};
  readonly #ended: Promise<void>;

  constructor(options: ListenerOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.#ended = this.#run();
  }

  /**
   * For how many milliseconds messages may have been missed: everything that was committed before has been received. Infinite
   * before it has listened.
   */
  get deafForMs(): number {
    return this.#now() - this.#heardAt;
  }

  /** Resolves once it listens, or after this time. */
  async listening(withinMs: number): Promise<void> {
    const until = this.#now() + withinMs;
    while (this.#heardAt === Number.NEGATIVE_INFINITY && this.#now() < until && !this.#isClosed) {
      await this.#pause(WAIT_MS);
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#closing.resolve();
    await this.#ended;
  }

  async #run(): Promise<void> {
    while (!this.#isClosed) {
      try {
        await this.#listen();
      } catch (error) {
        if (!(error instanceof EngineError)) throw error;
        this.#options.onLost(error);
      }
      await this.#pause(PAUSE_MS);
    }
  }

  /** Listens until the connection fails or the listener is closed. */
  async #listen(): Promise<void> {
    const { url, timeouts, channel, onMessage, onListening, testMs = TEST_MS } = this.#options;
    const connection = await connect(url, timeouts, (from, payload) => {
      if (from === channel) onMessage(payload);
      else this.#onTest(payload);
    });
    try {
      await connection.send(`LISTEN ${channel}`);
      await connection.send(`LISTEN ${this.#ownChannel}`);
      onListening();
      while (!this.#isClosed) {
        await this.#test(connection);
        await this.#pause(testMs);
      }
    } finally {
      connection.destroy();
    }
  }

  /** @throws EngineError if the message does not come back */
  async #test(connection: SingleConnection): Promise<void> {
    this.#tests += 1;
    const expected = String(this.#tests);
    const sentAt = this.#now();
    const heard = Promise.withResolvers<boolean>();
    this.#onTest = (payload) => {
      if (payload === expected) heard.resolve(true);
    };
    const timer = setTimeout(() => heard.resolve(false), this.#options.deafMs ?? DEAF_MS);
    try {
      const sent = connection.send("SELECT pg_notify($1, $2)", [this.#ownChannel, expected]);
      const isHeard = await Promise.race([
        sent.then(() => heard.promise),
        heard.promise,
        this.#closing.promise,
      ]);
      if (isHeard === false) throw new EngineError("no message came back", null);
      if (isHeard === true) this.#heardAt = sentAt;
    } finally {
      clearTimeout(timer);
    }
  }

  async #pause(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, ms);
    await Promise.race([promise, this.#closing.promise]);
    clearTimeout(timer);
  }
}
