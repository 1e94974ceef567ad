import type { ReportEntryFields } from "../format/entry.ts";
import { CappedList, CappedTally } from "./capped.ts";
import { refusalOf } from "./refusals.ts";

const CODES = 60;
const CHANGES = 100;
const INCIDENTS = 60;

/** Actions that change what agents or people may do, or what is retained. */
const CHANGES_OF = [
  "agent.create",
  "agent.update",
  "agent.archive",
  "connector.authorise",
  "connector.remove",
  "config.change",
  "workspace.create",
  "workspace.update",
];

/** Incidents listed individually and not counted as failed calls, because each calls for a review. */
const NAMED_INCIDENTS = ["ledger.foreign_write", "ledger.file_moved", "ledger.rotate_key"];

/** Actions by which people observe what happens: Article 14(4)(a) requires that they can. */
const READS = ["task.read", "task.events", "task.list", "ledger.read", "ledger.export", "ledger.checkpoint"];

export interface EventTally {
  count: number;
  first: string;
  last: string;
}

/** Refusals, failures, changes and reads. */
export class Events {
  /** By action and code, joined by a space. */
  readonly refusals = new CappedTally<EventTally>(CODES, noEvents);
  /** Requests that could not be served: the resource did not exist, or the form was not accepted. */
  readonly unserved = new CappedTally<EventTally>(CODES, noEvents);
  readonly failures = new CappedTally<EventTally>(CODES, noEvents);
  readonly changes = new CappedList<ReportEntryFields>(CHANGES);
  readonly incidents = new CappedList<ReportEntryFields>(INCIDENTS);
  readonly reads = new CappedTally<EventTally>(READS.length, noEvents);
  readonly counts = {
    refused: 0,
    unserved: 0,
    failed: 0,
    limits: 0,
    unknownCallers: 0,
    late: 0,
    cancelled: 0,
  };

  add(entry: ReportEntryFields): void {
    const { action, outcome, code, ts, detail } = entry;
    const refusal = refusalOf(entry);
    if (refusal === "policy") {
      this.counts.refused += 1;
      note(this.refusals.of(`${action} ${code ?? ""}`), ts);
    } else if (refusal === "unserved") {
      this.counts.unserved += 1;
      note(this.unserved.of(`${action} ${code ?? ""}`), ts);
    } else if (outcome === "failed" && !NAMED_INCIDENTS.includes(action)) {
      this.counts.failed += 1;
      note(this.failures.of(`${action} ${code ?? ""}`), ts);
    }
    if (action === "limit.exceeded") this.counts.limits += 1;
    if (action === "auth.refused") this.counts.unknownCallers += 1;
    if (action === "task.cancel" && outcome === "succeeded") this.counts.cancelled += 1;
    if (CHANGES_OF.includes(action) && outcome === "succeeded") this.changes.add(entry);
    const isLate = detail !== undefined && Object.keys(detail).some((key) => /^late(?:_|$)/.test(key));
    if (isLate) this.counts.late += 1;
    if (isLate || NAMED_INCIDENTS.includes(action)) this.incidents.add(entry);
    if (READS.includes(action) && outcome === "succeeded") note(this.reads.of(action), ts);
  }

  get readCount(): number {
    return this.reads.sorted(() => 0).reduce((sum, [, { count }]) => sum + count, 0);
  }
}

function noEvents(): EventTally {
  return { count: 0, first: "", last: "" };
}

function note(tally: EventTally, ts: string): void {
  if (tally.count === 0) tally.first = ts;
  tally.count += 1;
  tally.last = ts;
}
