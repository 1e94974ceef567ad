import { hasScope } from "../access/scopes.ts";
import type { FeedEvent } from "./events.ts";
import { mayHear } from "./events.ts";
import { ConflatingQueue } from "./queue.ts";
import { areSame, type FeedRights } from "./rights.ts";

/** UTF-16 code units taken at a time. Updates not yet taken can still be replaced. */
const TAKEN_UNITS = 32 * 1024;
const encoder = new TextEncoder();

/** An event's data as text, encoded once for all readers, with and without the data that needs a scope. */
export class FeedText {
  readonly event: FeedEvent;
  #plain: string | undefined;
  #whole: string | undefined;

  constructor(event: FeedEvent) {
    this.event = event;
  }

  for({ scopes }: FeedRights): string {
    const { data, more } = this.event;
    if (!more || !hasScope(scopes, more.scope)) {
      this.#plain ??= this.#text(data);
      return this.#plain;
    }
    this.#whole ??= this.#text({ ...data, ...more.data });
    return this.#whole;
  }

  #text(data: object): string {
    return textOf(this.event.name, data);
  }
}

/** An event frame without its id (WHATWG HTML, section 9.2). JSON contains no line breaks. */
function textOf(name: string, data: object): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** A stream of a workspace's feed. */
export class FeedReader {
  readonly #queue = new ConflatingQueue();
  readonly #load: () => Promise<FeedRights | undefined>;
  readonly #now: () => number;
  readonly #left: () => void;
  #rights: FeedRights | null = null;
  #usage: string | null = null;
  #lastId = 0;
  #isClosed = false;
  #wake = () => {};

  /**
   * `load` returns the caller's current rights; undefined if there are none. `now` is in milliseconds since the Unix
   * epoch. `left` is called when the reader is closed.
   */
  constructor(load: () => Promise<FeedRights | undefined>, now: () => number, left: () => void) {
    this.#load = load;
    this.#now = now;
    this.#left = left;
  }

  /** The rights as last loaded; null before the first time. */
  get rights(): FeedRights | null {
    return this.#rights;
  }

  /** Whether usage has not been reported since the last reset. */
  get needsUsage(): boolean {
    return this.#usage === null;
  }

  /** Loads the caller's rights. If they have changed, waiting updates were chosen by outdated rights. */
  async renewRights(): Promise<void> {
    const before = this.#rights;
    const now = await this.#load();
    if (!now) {
      this.close();
      return;
    }
    this.#rights = now;
    if (before && !areSame(before, now)) this.reset();
  }

  /** Reports an event if the caller may get it. */
  tell(text: FeedText): void {
    this.closeIfOver();
    const rights = this.#rights;
    const { event } = text;
    if (this.#isClosed || rights === null || !mayHear(rights, event)) return;
    this.#queue.put(`${event.name} ${event.key}`, text.for(rights));
    this.#wake();
  }

  /** Reports usage if it differs from the last report. */
  tellUsage(text: FeedText): void {
    const now = this.#rights && text.for(this.#rights);
    if (now === null || now === this.#usage) return;
    this.#usage = now;
    this.tell(text);
  }

  /** Makes the reader read everything again. */
  reset(): void {
    this.#usage = null;
    this.#queue.reset();
    this.#wake();
  }

  /** The next frames, waiting until there are some; null once closed. */
  async next(): Promise<readonly Uint8Array[] | null> {
    for (this.closeIfOver(); !this.#isClosed; this.closeIfOver()) {
      if (!this.#queue.isEmpty) return [this.#frames()];
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return null;
  }

  /** Closes the reader if its rights have expired, discarding waiting updates. */
  closeIfOver(): void {
    if (this.#rights !== null && this.#now() >= this.#rights.until) this.close();
  }

  /** Closes the reader, even while it waits. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#wake();
    this.#left();
  }

  #frames(): Uint8Array {
    const { mark, texts } = this.#queue.take(TAKEN_UNITS);
    const all = mark === null ? texts : [textOf(mark, {}), ...texts];
    let frames = "";
    for (const text of all) frames += `id: ${++this.#lastId}\n${text}`;
    return encoder.encode(frames);
  }
}
