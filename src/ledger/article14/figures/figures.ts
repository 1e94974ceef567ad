import { type ReportEntryFields, readEntryFields } from "../format/entry.ts";
import { Calls } from "./calls.ts";
import { Decisions } from "./decisions.ts";
import { Events } from "./events.ts";
import { Timeline } from "./timeline.ts";

/** The report's figures about the included entries, computed in one pass and in bounded memory. */
export class ReportFigures {
  readonly timeline: Timeline;
  readonly decisions = new Decisions();
  readonly calls = new Calls();
  readonly events = new Events();
  /** Number of included entries. */
  entries = 0;
  /**
   * Those of them that are not in the form this program writes. The bundle contains them unchanged; no other figure
   * counts them.
   */
  unreadable = 0;

  /** @param first, last Times of the first and last entry, in milliseconds. */
  constructor(first: number, last: number) {
    this.timeline = new Timeline(first, last);
  }

  /** @returns the entry's fields; undefined if it cannot be read */
  add(bytes: string): ReportEntryFields | undefined {
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
