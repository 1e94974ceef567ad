import { idTime, idTimeOf } from "../../../src/base/ids.ts";
import { type Allowance, THRIFTY } from "../actors/paying.ts";
import { isCall, type TimedEntry } from "../evidence-file.ts";
import type { Seen } from "../soak.ts";

/** How long after its answer a change certainly counts. Earlier refusals may be recorded a little late. */
const SETTLED_MS = 1_000;
const DAY_CHARACTERS = 10;

/**
 * Calls that began although the agent's day had nothing left besides what was reserved, and calls that were refused
 * although something was left. What was spent and reserved at each entry is taken only from the ledger.
 */
export function* budgetFaults({ file, world }: Seen): Generator<string> {
  const spent = new Map<string, number>();
  const reserved = new Map<number, number>();
  for (const entry of file.entries) {
    const { seq, ref, action, phase, outcome, agent, code } = entry;
    if (agent !== THRIFTY) continue;
    const day = entry.ts.slice(0, DAY_CHARACTERS);
    const gone = spent.get(day) ?? 0;
    if (outcome === "denied" && code === "credits_exhausted") {
      const left = surelyAllowed(world.allowances, decidedAt(entry)) - gone;
      if (left > 0) yield `${action} ${seq} was refused, with ${left} left`;
    }
    if (!isCall(entry)) continue;
    if (phase === "intent" && reservedBy(entry) > 0) {
      const out = [...reserved.values()].reduce((sum, micros) => sum + micros, 0);
      const left = perhapsAllowed(world.allowances, Date.parse(entry.ts)) - gone;
      if (out >= left) yield `${action} ${seq} began with ${left} left, of which ${out} was reserved`;
      reserved.set(seq, reservedBy(entry));
    }
    if (phase === "outcome" && ref !== undefined) {
      reserved.delete(ref);
      spent.set(day, gone + (entry.credits ?? 0));
    }
  }
}

/** Tasks that ended for lack of credits although no call of theirs was refused. */
export function* exhaustedFaults({ tasks, file }: Seen): Generator<string> {
  const refused = new Set(
    file.entries.filter(({ code }) => code === "credits_exhausted").map(({ task }) => task),
  );
  for (const { id, error } of tasks.values()) {
    if (error?.code === "credits_exhausted" && !refused.has(id)) yield `${id} was refused no call`;
  }
}

/** Micro-credits that are reserved for a call according to its intent. */
export function reservedBy({ detail }: TimedEntry): number {
  return Number(detail?.reserved ?? detail?.price ?? 0);
}

/** The most that the agent may possibly spend at that time. */
function perhapsAllowed(allowances: readonly Allowance[], at: number): number {
  return Math.max(...allowances.filter(({ askedAt }) => askedAt <= at).map(({ micros }) => micros));
}

/**
 * The earliest moment at which a call may have been refused, as an `idTime`: when it arrived. Its entry may be much later if
 * the store was away in between.
 */
function decidedAt({ request_id: request, ts }: TimedEntry): string {
  return request === undefined ? idTimeOf(Date.parse(ts)) : idTime(request);
}

/** What the agent may certainly spend at that time, whatever happened to unanswered changes. */
function surelyAllowed(allowances: readonly Allowance[], at: string): number {
  const known = allowances.filter(
    ({ answeredAt }) => answeredAt !== null && idTimeOf(answeredAt + SETTLED_MS) < at,
  );
  return Math.max(0, ...known.map(({ micros }) => micros));
}
