import type { Agent } from "../access/agents.ts";
import type { Workspaces } from "../access/workspaces.ts";
import type { Clock } from "../base/clock.ts";
import { toCredits } from "../base/credits.ts";
import { Problem } from "../base/errors.ts";
import { matchesAny } from "../base/glob.ts";
import { type Place, Reservations } from "../limits/reservations.ts";
import type { Sql, Tx } from "../store/db.ts";
import { recordSpending, spentThisMonth, spentToday } from "./spending.ts";

/** The price of a call of each tool whose name, `<connector>.<tool>`, the pattern matches. */
export interface ToolPrice {
  readonly pattern: string;
  /** Micro-credits a call. */
  readonly micros: number;
}

/** Whose budgets a call counts against: an agent's day and its workspace's month, or the month alone. */
export interface Spender {
  readonly workspaceId: number;
  /** As read in the transaction, or just before it; null: whoever calls acts as no agent. */
  readonly agent: Pick<Agent, "id" | "name" | "creditsPerDay"> | null;
}

/** A call that is about to be made. */
export interface Claim {
  readonly spender: Spender;
  /** Who gives the reservation back: of a task its id, since a task has one call out at a time. */
  readonly owner: string;
  /** Micro-credits that the call is expected to cost; 0: it is free. Asked where there is a budget to reserve of. */
  expected(): number;
}

/**
 * Reserves what a call is expected to cost, in the transaction of the call's intent and before anything lasts that depends on
 * it. @returns micro-credits reserved. @throws Problem 402 `credits_exhausted`
 */
export type Reserve = (tx: Tx, claim: Claim) => Promise<number>;

/**
 * A part of a budget is spent for the first time: in the transaction of what was charged last, or of the change that has
 * lowered the budget onto what was spent.
 */
export interface Crossing {
  readonly workspaceId: number;
  readonly budget: "agent_day" | "workspace_month";
  /** The name of the agent whose day it is. */
  readonly agent: string | null;
  readonly percent: 80 | 100;
  /** Micro-credits, what was charged last among them; 0 of a budget of 0, all of which is spent. */
  readonly spent: number;
  /** The budget, in micro-credits. */
  readonly limit: number;
}

export interface BudgetParts {
  readonly workspaces: Pick<Workspaces, "get">;
  readonly clock: Clock;
  /** The first that matches a tool's name counts; a tool that none matches is free. */
  readonly toolPrices: readonly ToolPrice[];
  /** Writes what is to be known of a crossing. */
  crossed(tx: Tx, crossing: Crossing): Promise<void>;
}

/** How often who waits looks without a cause: a new day, a clock that was set and a raised budget give nothing back. */
const LOOK_MS = 1_000;

/** What is told of, and how much of a budget it is, in micro-credits: whole numbers, so that four fifths are rounded up. */
const TOLD = [
  { percent: 80, part: (limit: number) => limit - Math.floor(limit / 5) },
  { percent: 100, part: (limit: number) => limit },
] as const;

/** The call has to wait for a budget: thrown out of its transaction, of which nothing lasts then. */
class Hindered extends Error {
  override readonly name = "Hindered";
}

/**
 * Budgets in credits, of an agent's day and of a workspace's month (UTC). What calls that are out will cost is reserved in
 * memory: a call that would begin with nothing left beside that waits until one of them is settled, and looks again. So none is
 * refused before its budget is spent, and together they overspend by no more than what each costs above its estimate,
 * and what the last of them costs.
 *
 * Reservations are of a budget, not of its day: a call that is out at midnight is charged to the day in which it ends.
 */
export class Budgets {
  readonly #parts: BudgetParts;
  readonly #reservations = new Reservations();

  constructor(parts: BudgetParts) {
    this.#parts = parts;
  }

  /** Calls for which something is reserved now. */
  get reservations(): number {
    return this.#reservations.leases;
  }

  /** What a call of a tool costs, in micro-credits. */
  toolPrice(tool: string): number {
    return this.#parts.toolPrices.find(({ pattern }) => matchesAny([pattern], tool))?.micros ?? 0;
  }

  /** @throws Problem 402 `credits_exhausted` where a budget is spent, whatever is reserved of it. */
  async check(sql: Pick<Sql, "get">, spender: Spender): Promise<void> {
    await this.#left(sql, spender);
  }

  /**
   * Makes an attempt to begin a call, and where it has to wait for a budget another one, each time that something may have
   * been given back. `attempt` runs one transaction and calls `reserve` in it, once at most; what it reserves lasts where
   * the transaction does, and until `release`.
   * @throws the signal's reason, where it aborts while the call waits; whatever `attempt` throws
   */
  async admit<Result>(signal: AbortSignal, attempt: (reserve: Reserve) => Promise<Result>): Promise<Result> {
    const line: { place: Place | null } = { place: null };
    const reserve: Reserve = async (tx, claim) => {
      const left = await this.#left(tx, claim.spender);
      const expected = left.length === 0 ? 0 : claim.expected();
      if (expected === 0) return 0;
      // Whoever has waited for its turn in one line does not stand behind the other one as well.
      const isNew = line.place === null;
      for (const { budget, micros } of left) {
        const isFree = this.#reservations.reserved(budget) < micros;
        if (isFree && !(isNew && this.#reservations.waiting(budget) > 0)) continue;
        if (line.place?.budget !== budget) {
          line.place?.leave();
          line.place = this.#reservations.join(budget);
        }
        throw new Hindered();
      }
      const budgets = left.map(({ budget }) => budget);
      if (!this.#reservations.take(claim.owner, budgets, expected)) {
        throw new Error(`${claim.owner} has a reservation already`);
      }
      tx.onRollback(() => this.release(claim.owner));
      return expected;
    };
    try {
      for (;;) {
        try {
          return await attempt(reserve);
        } catch (error) {
          if (!(error instanceof Hindered) || line.place === null) throw error;
        }
        await this.#turn(line.place, signal);
      }
    } finally {
      line.place?.leave();
    }
  }

  /** Gives back what is reserved for a call: once its charge is on disk, or when it costs nothing. Any number of times. */
  release(owner: string): void {
    this.#reservations.release(owner);
  }

  /** Charges what a call cost, in micro-credits, in the transaction of its outcome. */
  async charge(
    tx: Tx,
    {
      workspaceId,
      agent,
    }: { readonly workspaceId: number; readonly agent: Pick<Agent, "id" | "name"> | null },
    micros: number,
  ): Promise<void> {
    if (micros === 0) return;
    const { workspaces, clock } = this.#parts;
    const now = clock.now();
    const day = await recordSpending(tx, workspaceId, agent?.id ?? null, now, micros);
    if (agent && day.limit !== null) {
      const { spent, limit } = day;
      await this.#tell(tx, { workspaceId, budget: "agent_day", agent: agent.name, spent, limit }, micros);
    }
    const { creditsPerMonth: limit } = workspaces.get(workspaceId);
    if (limit !== null) {
      const spent = await spentThisMonth(tx, workspaceId, now);
      await this.#tell(tx, { workspaceId, budget: "workspace_month", agent: null, spent, limit }, micros);
    }
  }

  /**
   * Tells of a budget that was set, in the transaction that has set it, what is spent of it by that. Micro-credits; null: no
   * budget. `agent`: whose day it is; null: it is the workspace's month.
   */
  async changed(
    tx: Tx,
    {
      workspaceId,
      agent,
    }: { readonly workspaceId: number; readonly agent: Pick<Agent, "id" | "name"> | null },
    { before, after }: { readonly before: number | null; readonly after: number | null },
  ): Promise<void> {
    if (after === null || after === before) return;
    const now = this.#parts.clock.now();
    const spent = agent
      ? await spentToday(tx, workspaceId, agent.id, now)
      : await spentThisMonth(tx, workspaceId, now);
    const facts = agent
      ? { workspaceId, budget: "agent_day" as const, agent: agent.name, spent, limit: after }
      : { workspaceId, budget: "workspace_month" as const, agent: null, spent, limit: after };
    await this.#tellOnce(tx, facts, (part) => before !== null && spent >= part(before));
  }

  async #tell(tx: Tx, facts: Omit<Crossing, "percent">, micros: number): Promise<void> {
    await this.#tellOnce(tx, facts, (part) => facts.spent - micros >= part(facts.limit));
  }

  /** @param wasReached whether a part of the budget was spent before, and told of then */
  async #tellOnce(
    tx: Tx,
    facts: Omit<Crossing, "percent">,
    wasReached: (part: (limit: number) => number) => boolean,
  ): Promise<void> {
    for (const { percent, part } of TOLD) {
      if (facts.spent < part(facts.limit) || wasReached(part)) continue;
      await this.#parts.crossed(tx, { ...facts, percent });
    }
  }

  /** What each budget has left, reservations aside; always more than 0. @throws Problem 402 `credits_exhausted` */
  async #left(
    sql: Pick<Sql, "get">,
    { workspaceId, agent }: Spender,
  ): Promise<{ readonly budget: string; readonly micros: number }[]> {
    const { workspaces, clock } = this.#parts;
    const { creditsPerMonth } = workspaces.get(workspaceId);
    const left: { readonly budget: string; readonly micros: number }[] = [];
    if (agent !== null && agent.creditsPerDay !== null) {
      const micros = agent.creditsPerDay - (await spentToday(sql, workspaceId, agent.id, clock.now()));
      if (micros <= 0) {
        const credits = toCredits(agent.creditsPerDay);
        throw exhausted(`The agent ${agent.name} has spent its ${credits} credits of today (UTC).`);
      }
      left.push({ budget: `day:${workspaceId}:${agent.id}`, micros });
    }
    if (creditsPerMonth !== null) {
      const micros = creditsPerMonth - (await spentThisMonth(sql, workspaceId, clock.now()));
      if (micros <= 0) {
        const credits = toCredits(creditsPerMonth);
        throw exhausted(`The workspace has spent its ${credits} credits of this month (UTC).`);
      }
      left.push({ budget: `month:${workspaceId}`, micros });
    }
    return left;
  }

  async #turn(place: Place, signal: AbortSignal): Promise<void> {
    const cancel = this.#parts.clock.after(LOOK_MS, () => place.wake());
    try {
      await place.turn(signal);
    } finally {
      cancel();
    }
  }
}

function exhausted(detail: string): Problem {
  return new Problem("credits_exhausted", detail);
}
