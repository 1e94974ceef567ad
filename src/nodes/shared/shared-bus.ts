import { type Static, Type } from "typebox";
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { validator } from "../../base/schema.ts";
import { Signal } from "../../base/signal.ts";
import { StoreUnavailable } from "../../store/db.ts";
import { Notifications, PAYLOAD_BYTES } from "../../store/postgres/notifications.ts";
import { type Bus, type BusMessage, MESSAGE_BYTES, type SendOptions } from "../bus.ts";

const CHANNEL = "gatehouse";
/** NOTIFY takes a lock of the whole database at its commit, so messages are sent together. */
const GATHER_MS = 20;
const RETRY_MS = 250;
/** The most messages that wait while the store is away. Beyond that, other nodes are told that they missed some. */
const MOST_WAITING = 10_000;
/** The topic of a message that says that others were dropped. */
const DROPPED = "dropped";

const VALUE = Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Null()]);
/** A message as it is sent: its topic and its content. Handlers check the values that they use. */
const ENVELOPE = Type.Tuple([Type.String(), Type.Record(Type.String(), VALUE)]);
/** What one notification contains. */
const BATCH = validator(Type.Object({ from: Type.String(), messages: Type.Array(ENVELOPE) }));

type Envelope = readonly [topic: string, message: BusMessage];

export interface SharedBusOptions {
  /** A direct URL of the database. */
  readonly url: string;
  readonly clock: Pick<Clock, "after">;
  readonly log: Pick<Log, "info" | "warn">;
}

/** Messages by LISTEN and NOTIFY of PostgreSQL. */
export class SharedBus implements Bus {
  readonly missed = new Signal<void>();
  readonly #options: SharedBusOptions;
  readonly #notifications: Notifications;
  /** Distinguishes this process's own messages, which it receives as well. */
  readonly #self: string = crypto.randomUUID();
  readonly #handlers = new Map<string, Set<(message: BusMessage) => void>>();
  #waiting: string[] = [];
  #cancel: (() => void) | null = null;
  #sending: Promise<void> | null = null;
  #isLost = false;
  #isClosed = false;

  constructor(options: SharedBusOptions) {
    this.#options = options;
    const { url, log } = options;
    this.#notifications = new Notifications({
      ...{ url, channel: CHANNEL },
      onMessage: (payload) => this.#receive(payload),
      onListening: () => {
        if (this.#isLost) log.info("messages of other nodes arrive again");
        this.#isLost = false;
        this.missed.emit();
      },
      onLost: (error) => {
        if (!this.#isLost) log.warn("messages of other nodes cannot be received", { error });
        this.#isLost = true;
      },
    });
  }

  get deafForMs(): number {
    return this.#notifications.deafForMs;
  }

  /** Resolves once messages arrive, or after this time. */
  listening(withinMs: number): Promise<void> {
    return this.#notifications.listening(withinMs);
  }

  send(topic: string, message: BusMessage, { isUrgent = false }: SendOptions = {}): void {
    const text = JSON.stringify([topic, message] satisfies Envelope);
    if (Buffer.byteLength(text) > MESSAGE_BYTES) throw new RangeError(`a message of ${topic} is too long`);
    if (this.#isClosed) return;
    if (this.#waiting.length >= MOST_WAITING) {
      this.#waiting = [JSON.stringify([DROPPED, {}] satisfies Envelope)];
    }
    this.#waiting.push(text);
    if (isUrgent) this.#sendNow();
    else this.#sendIn(GATHER_MS);
  }

  listen(topic: string, handle: (message: BusMessage) => void): () => void {
    const handlers = this.#handlers.get(topic) ?? new Set();
    handlers.add(handle);
    this.#handlers.set(topic, handlers);
    return () => void handlers.delete(handle);
  }

  /** Sends what waits, if that is possible. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancel?.();
    this.#cancel = null;
    await this.#sending;
    await this.#sendAll().catch(() => this.#options.log.warn("the last messages to other nodes are lost"));
    await this.#notifications.close();
  }

  #sendIn(ms: number): void {
    if (this.#isClosed || this.#sending) return;
    this.#cancel ??= this.#options.clock.after(ms, () => this.#sendNow());
  }

  /** While a notification is under way, whatever comes next follows it. */
  #sendNow(): void {
    this.#cancel?.();
    this.#cancel = null;
    if (this.#sending) return;
    let retryMs = GATHER_MS;
    this.#sending = this.#sendAll()
      .catch((error: unknown) => {
        if (!(error instanceof StoreUnavailable)) throw error;
        retryMs = RETRY_MS;
      })
      .finally(() => {
        this.#sending = null;
        if (this.#waiting.length > 0) this.#sendIn(retryMs);
      });
  }

  /** @throws StoreUnavailable; what was not sent waits */
  async #sendAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, this.#fitting());
      try {
        await this.#notifications.notify(this.#batchOf(batch));
      } catch (error) {
        this.#waiting.unshift(...batch);
        throw error;
      }
    }
  }

  /** How many of the waiting messages fit in one notification. */
  #fitting(): number {
    let bytes = Buffer.byteLength(this.#batchOf([]));
    let count = 0;
    for (const text of this.#waiting) {
      bytes += Buffer.byteLength(text) + 1;
      if (bytes > PAYLOAD_BYTES) break;
      count += 1;
    }
    return count;
  }

  /** @param messages as JSON */
  #batchOf(messages: readonly string[]): string {
    return `{"from":${JSON.stringify(this.#self)},"messages":[${messages.join(",")}]}`;
  }

  #receive(payload: string): void {
    const batch = parsed(payload);
    if (batch === undefined) {
      this.#options.log.warn("a message that no node has sent was ignored", { bytes: payload.length });
      return;
    }
    if (batch.from === this.#self) return;
    for (const [topic, message] of batch.messages) {
      if (topic === DROPPED) this.missed.emit();
      for (const handle of this.#handlers.get(topic) ?? []) handle(message);
    }
  }
}

/** Undefined if it is not a batch: everybody who can connect to the database can send notifications. */
function parsed(payload: string): Static<typeof BATCH.schema> | undefined {
  try {
    const batch: unknown = JSON.parse(payload);
    return BATCH.is(batch) ? batch : undefined;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return undefined;
  }
}
