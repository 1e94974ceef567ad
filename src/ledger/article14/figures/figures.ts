import { type EntryFields, readEntryFields } from "../format/entry.ts";
import { Calls } from "./calls.ts";
import { Decisions } from "./decisions.ts";
import { Events } from "./events.ts";
import { Timeline } from "./timeline.ts";

/** What the report says of the included entries: made in one pass over them, in bounded memory. */
export class Figures {
  readonly timeline: Timeline;
  readonly decisions = new Decisions();
  readonly calls = new Calls();
  readonly events = new Events();
  /** Included entries. */
  entries = 0;
  /** Of those: not of the form that this program writes. They are in the bundle as they are, and in no other figure. */
  unreadable = 0;

  /** @param first, last Times of the first and the last entry, in milliseconds. */
  constructor(first: number, last: number) {
    this.timeline = new Timeline(first, last);
  }

  /** @returns the entry's fields, undefined for one that can't be read */
  add(bytes: string): EntryFields | undefined {
    this.entries += 1;
    const entry = readEntryFields(bytes);
    if (!entry || Number.isNaN(Date.parse(entry.ts))) {
      this.unreadable += 1;
      return undefined;
    }
    this.decisions.add(entry, this.timeline);
    this.calls.add(entry, this.timeline);
    this.events.add(entry);
    return entry;
  }
}
