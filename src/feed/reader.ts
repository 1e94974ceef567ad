import { hasScope } from "../access/scopes.ts";
import type { FeedEvent } from "./events.ts";
import { mayHear } from "./events.ts";
import { ConflatingQueue } from "./queue.ts";
import { areSame, type Rights } from "./rights.ts";

/** UTF-16 units that are taken at once: what is not taken yet is still replaced by what comes later. */
const TAKEN_UNITS = 32 * 1024;
const encoder = new TextEncoder();

/** An event's data as text, made once for all readers: as everybody is told it, and as those are who are told more. */
export class FeedText {
  readonly event: FeedEvent;
  #plain: string | undefined;
  #whole: string | undefined;

  constructor(event: FeedEvent) {
    this.event = event;
  }

  for({ scopes }: Rights): string {
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

/** The part of a frame (WHATWG HTML, section 9.2) that follows its id. JSON has no line breaks of its own. */
function textOf(name: string, data: object): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** One stream of a workspace's feed. */
export class FeedReader {
  readonly #queue = new ConflatingQueue();
  readonly #load: () => Promise<Rights | undefined>;
  readonly #now: () => number;
  readonly #left: () => void;
  #rights: Rights | null = null;
  #usage: string | null = null;
  #lastId = 0;
  #isClosed = false;
  #wake = () => {};

  /**
   * `load` answers what its caller may be told now; undefined: nothing any more. `now` is the time in milliseconds since the
   * Unix epoch. `left` is called once it is closed.
   */
  constructor(load: () => Promise<Rights | undefined>, now: () => number, left: () => void) {
    this.#load = load;
    this.#now = now;
    this.#left = left;
  }

  /** As last loaded; null: nobody has asked yet. */
  get rights(): Rights | null {
    return this.#rights;
  }

  /** It has not been told of the usage since it was last to read anew. */
  get needsUsage(): boolean {
    return this.#usage === null;
  }

  /** Takes what its caller may be told now. What waits was chosen by what it might be told before. */
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

  /** Tells of an event, where its caller may hear of it. */
  tell(text: FeedText): void {
    this.closeIfOver();
    const rights = this.#rights;
    const { event } = text;
    if (this.#isClosed || rights === null || !mayHear(rights, event)) return;
    this.#queue.put(`${event.name} ${event.key}`, text.for(rights));
    this.#wake();
  }

  /** Tells of the usage, where it is not what it was told last. */
  tellUsage(text: FeedText): void {
    const now = this.#rights && text.for(this.#rights);
    if (now === null || now === this.#usage) return;
    this.#usage = now;
    this.tell(text);
  }

  /** Has it read everything anew. */
  reset(): void {
    this.#usage = null;
    this.#queue.reset();
    this.#wake();
  }

  /** The next frames; null once it is closed. Waits until there are some. */
  async next(): Promise<readonly Uint8Array[] | null> {
    for (this.closeIfOver(); !this.#isClosed; this.closeIfOver()) {
      if (!this.#queue.isEmpty) return [this.#frames()];
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return null;
  }

  /** Ends the reading where its caller's time is over: nothing is told past it, also of what waited. */
  closeIfOver(): void {
    if (this.#rights !== null && this.#now() >= this.#rights.until) this.close();
  }

  /** Ends the reading, also one that waits. */
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
