import type { ReportEntryFields } from "../format/entry.ts";
import { secondsToDecide } from "../format/oversight.ts";
import { CappedList, CappedTally } from "./capped.ts";
import { Requests } from "./requests.ts";
import { DECISION_SERIES, type Timeline } from "./timeline.ts";

export type DecisionFigure = (typeof DECISION_SERIES)[number];

/** Maximum number of decisions listed individually in the report; `oversight.csv` contains all of them. */
const LISTED = 200;
/** Maximum number of pairs of a name and the token that used it; any workspace has few. */
const PEOPLE = 2_000;

/** Upper bounds of the time a decision took, in seconds. Longer decisions are counted in a final bucket. */
export const DELAY_BOUNDS = [5, 30, 120, 600, 3_600] as const;

export interface PersonTally {
  readonly decisions: Map<DecisionFigure, number>;
  readonly roles: Set<string>;
  /** Decisions whose duration, in seconds, is known. */
  timed: number;
  seconds: number;
  shortest: number;
  longest: number;
}

const ROLES = 5;

/** Values of `oversight.decision` in entries. */
const CHANGED = "change";
const DISREGARDED = "disregard";
const EXPIRED = "expire";

/** Decisions that people took. */
export class Decisions {
  readonly listed = new CappedList<ReportEntryFields>(LISTED);
  /** By the name in the decision and the actor behind it; `readPersonKey` reads the key. */
  readonly people = new CappedTally<PersonTally>(PEOPLE, () => ({
    decisions: new Map(),
    roles: new Set(),
    timed: 0,
    seconds: 0,
    shortest: Number.POSITIVE_INFINITY,
    longest: 0,
  }));
  readonly byDecision = new Map<DecisionFigure, number>();
  /** Decisions by duration: one count per bound, and one for longer durations. */
  readonly delays: number[] = [...DELAY_BOUNDS, 0].map(() => 0);
  /** Approvals given within the first bound. */
  quickApprovals = 0;
  timed = 0;
  /** Kinds of override: approvals with arguments other than those requested, and disregarded outputs. */
  changed = 0;
  disregarded = 0;
  /** Calls presented to people, and their outcomes. */
  readonly requests = new Requests();
  /** Requests that nobody decided in time, whenever they were presented. */
  expired = 0;
  /** Attempts to decide that were not permitted, or failed. */
  refused = 0;

  add(entry: ReportEntryFields, timeline: Timeline): void {
    const { oversight, outcome } = entry;
    this.requests.add(entry);
    if (!oversight) return;
    this.listed.add(entry);
    if (oversight.decision === EXPIRED) {
      this.expired += 1;
      return;
    }
    if (outcome === "denied" || outcome === "failed") {
      this.refused += 1;
      return;
    }
    const decision = decisionOf(entry);
    if (oversight.decision === CHANGED) this.changed += 1;
    if (oversight.decision === DISREGARDED) this.disregarded += 1;
    this.byDecision.set(decision, (this.byDecision.get(decision) ?? 0) + 1);
    timeline.count(decision, Date.parse(entry.ts));
    const person = this.people.of(JSON.stringify([oversight.person ?? "", entry.actor]));
    person.decisions.set(decision, (person.decisions.get(decision) ?? 0) + 1);
    if (oversight.role !== undefined && person.roles.size < ROLES) person.roles.add(oversight.role);
    this.#time(entry, decision, person);
  }

  of(decision: DecisionFigure): number {
    return this.byDecision.get(decision) ?? 0;
  }

  get total(): number {
    return [...this.byDecision.values()].reduce((sum, count) => sum + count, 0);
  }

  #time(entry: ReportEntryFields, decision: DecisionFigure, person: PersonTally): void {
    const seconds = secondsToDecide(entry);
    if (seconds === undefined || seconds < 0) return;
    const at = DELAY_BOUNDS.findIndex((bound) => seconds < bound);
    const place = at < 0 ? DELAY_BOUNDS.length : at;
    this.delays[place] = (this.delays[place] ?? 0) + 1;
    this.timed += 1;
    if (decision === "approve" && place === 0) this.quickApprovals += 1;
    person.timed += 1;
    person.seconds += seconds;
    person.shortest = Math.min(person.shortest, seconds);
    person.longest = Math.max(person.longest, seconds);
  }
}

export function readPersonKey(key: string): { readonly name: string; readonly actor: string } {
  const [name, actor] = JSON.parse(key) as [string, string];
  return { name, actor };
}

/**
 * The decision in the report's terms: an approval with changed arguments is an override, and so is a disregarded
 * output.
 */
function decisionOf({ action, oversight }: ReportEntryFields): DecisionFigure {
  const named = oversight?.decision ?? action.replace(/^oversight\./, "");
  if (named === CHANGED || named === DISREGARDED) return "override";
  return DECISION_SERIES.find((known) => known === named) ?? "other";
}
