import type { FeedEventName, FeedEvents } from "../../http/api.ts";

/** The state of the event stream. */
export type FeedState = "connecting" | "live" | "lost";

type FeedListener<Name extends FeedEventName> = (data: FeedEvents[Name]) => void;
/** A message between tabs: an event, the stream's state, or a new tab asking for both. */
type TabMessage =
  | { readonly kind: "hello" }
  | { readonly kind: "event"; readonly name: FeedEventName; readonly data: unknown }
  | { readonly kind: "state"; readonly state: FeedState };

const ADDRESS = "/v1/events";
const SHARED_NAME = "gatehouse-feed";
/** The longest that a page waits for the stream before it reads. */
const LONGEST_BEGINNING_MS = 300;
const FIRST_RETRY_MS = 1_000;
const LAST_RETRY_MS = 10_000;

const NAMES: readonly FeedEventName[] = [
  "feed.open",
  "feed.reset",
  "task.changed",
  "approval.changed",
  "agent.changed",
  "workspace.changed",
  "connector.changed",
  "token.changed",
  "document.changed",
  "usage",
  "limit.exceeded",
  "budget.spent",
  "model.called",
  "ledger.grown",
];

/**
 * The workspace's events, as they come. A browser opens at most six connections to a server, shared by all tabs, so
 * one tab reads the stream and forwards it to the others if the browser has locks (on https and localhost).
 * Nothing is replayed. After each `feed.open` and `feed.reset`, data read earlier may be stale: `onGap` reports both.
 */
export class Feed {
  readonly #listeners = new Map<FeedEventName, Set<FeedListener<FeedEventName>>>();
  readonly #states = new Set<() => void>();
  readonly #last = new Map<FeedEventName, unknown>();
  readonly #refused: () => void;
  #state: FeedState = "connecting";
  #channel: BroadcastChannel | null = null;
  #source: EventSource | null = null;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #wait = FIRST_RETRY_MS;
  #end: AbortController | null = null;
  readonly #ready = Promise.withResolvers<void>();
  #isReady = false;

  /** `refused` is called when the server refuses the stream, perhaps because the session has ended. */
  constructor(refused: () => void) {
    this.#refused = refused;
  }

  get state(): FeedState {
    return this.#state;
  }

  /**
   * Resolves when the stream is open, or after a short wait without it. Data read afterwards need not be read again
   * when the stream opens.
   */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  start(): void {
    if (this.#end) return;
    const end = new AbortController();
    this.#end = end;
    setTimeout(() => this.#becomeReady(), LONGEST_BEGINNING_MS);
    if (navigator.locks === undefined || typeof BroadcastChannel === "undefined") {
      this.#open();
      return;
    }
    this.#channel = new BroadcastChannel(SHARED_NAME);
    this.#channel.addEventListener("message", ({ data }: MessageEvent<TabMessage>) => {
      if (data.kind === "hello") this.#tellAll();
      else if (data.kind === "event") this.#emit(data.name, data.data);
      else this.#follow(data.state);
    });
    this.#share({ kind: "hello" });
    navigator.locks
      .request(SHARED_NAME, { signal: end.signal }, () => this.#readUntil(end.signal))
      .catch((error: unknown) => {
        if (!end.signal.aborted) throw error;
      });
  }

  stop(): void {
    this.#end?.abort();
    this.#end = null;
    this.#close();
    this.#channel?.close();
    this.#channel = null;
    this.#state = "connecting";
  }

  /** The last event of this name since the tab was opened. */
  last<Name extends FeedEventName>(name: Name): FeedEvents[Name] | undefined {
    return this.#last.get(name) as FeedEvents[Name] | undefined;
  }

  /** @returns a function that stops listening */
  listen<Name extends FeedEventName>(name: Name, listener: FeedListener<Name>): () => void {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners);
    listeners.add(listener as FeedListener<FeedEventName>);
    return () => void listeners.delete(listener as FeedListener<FeedEventName>);
  }

  /** Calls `listener` whenever events may have been missed. @returns a function that removes the listener */
  onGap(listener: () => void): () => void {
    const ends = [this.listen("feed.open", listener), this.listen("feed.reset", listener)];
    return () => {
      for (const end of ends) end();
    };
  }

  onState(listener: () => void): () => void {
    this.#states.add(listener);
    return () => void this.#states.delete(listener);
  }

  /** Holds the lock until the tab or the session ends. */
  #readUntil(signal: AbortSignal): Promise<void> {
    this.#open();
    return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
  }

  #open(): void {
    const source = new EventSource(ADDRESS);
    this.#source = source;
    for (const name of NAMES) {
      source.addEventListener(name, ({ data }: MessageEvent<string>) => {
        const parsed: unknown = JSON.parse(data);
        this.#emit(name, parsed);
        this.#share({ kind: "event", name, data: parsed });
      });
    }
    source.addEventListener("open", () => {
      this.#wait = FIRST_RETRY_MS;
      this.#tell("live");
    });
    source.addEventListener("error", () => {
      this.#tell("lost");
      // The browser reconnects automatically, but gives up if the answer is not a stream.
      if (source.readyState !== EventSource.CLOSED) return;
      this.#close();
      this.#refused();
      this.#retry = setTimeout(() => this.#open(), this.#wait);
      this.#wait = Math.min(this.#wait * 2, LAST_RETRY_MS);
    });
  }

  #close(): void {
    clearTimeout(this.#retry);
    this.#source?.close();
    this.#source = null;
  }

  /** For tabs opened after the stream was. */
  #tellAll(): void {
    if (this.#source === null) return;
    this.#share({ kind: "state", state: this.#state });
    const usage = this.#last.get("usage");
    if (usage !== undefined) this.#share({ kind: "event", name: "usage", data: usage });
  }

  /** Takes over the state from the tab that reads the stream. */
  #follow(state: FeedState): void {
    this.#become(state);
    if (state === "live") this.#becomeReady();
  }

  #tell(state: FeedState): void {
    this.#become(state);
    this.#share({ kind: "state", state });
  }

  #share(shared: TabMessage): void {
    this.#channel?.postMessage(shared);
  }

  #become(state: FeedState): void {
    if (state === this.#state) return;
    this.#state = state;
    for (const listener of this.#states) listener();
  }

  #becomeReady(): void {
    this.#isReady = true;
    this.#ready.resolve();
  }

  #emit(name: FeedEventName, data: unknown): void {
    if (name === "feed.open" && !this.#isReady) {
      this.#becomeReady();
      return;
    }
    this.#last.set(name, data);
    for (const listener of this.#listeners.get(name) ?? []) listener(data as FeedEvents[FeedEventName]);
  }
}
