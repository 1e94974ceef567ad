import type { Agent } from "../access/agents.ts";
import type { Workspaces } from "../access/workspaces.ts";
import type { Clock } from "../base/clock.ts";
import { toCredits } from "../base/credits.ts";
import { Problem } from "../base/errors.ts";
import { matchesAny } from "../base/glob.ts";
import { Signal } from "../base/signal.ts";
import type { QueueTicket, Reservations, UnspentBudget } from "../limits/reservations.ts";
import type { Sql, Tx } from "../store/db.ts";
import type { MonthTotals } from "./month-totals.ts";
import { recordSpending, spentToday } from "./spending.ts";

/** The price of one call to a tool whose name, `<connector>.<tool>`, matches the pattern. */
export interface ToolPrice {
  readonly pattern: string;
  /** Micro-credits per call. */
  readonly micros: number;
}

/**
 * The budgets that a call is charged to: an agent's daily and its workspace's monthly budget, or only the monthly
 * one.
 */
export interface Spender {
  readonly workspaceId: number;
  /** As read in the transaction or just before it. Null: the caller does not act as an agent. */
  readonly agent: Pick<Agent, "id" | "name" | "creditsPerDay"> | null;
}

/** A call that is about to be made. */
export interface Claim {
  readonly spender: Spender;
  /** The owner of the reservation. For a task, this is its id, since a task makes one call at a time. */
  readonly owner: string;
  /**
   * The expected cost of the call in micro-credits; 0 if it is free. Only called if there is a budget to reserve
   * from.
   */
  expected(): number;
}

/**
 * Reserves a call's expected cost. MUST be called in the transaction of the call's intent, before any write that
 * depends on it. @returns micro-credits reserved. @throws Problem 402 `credits_exhausted`
 */
export type ReserveCredits = (tx: Tx, claim: Claim) => Promise<number>;

/**
 * Spending has reached a share of a budget for the first time. Reported in the transaction of the charge, or of the
 * change that lowered the budget to what was already spent.
 */
export interface BudgetCrossing {
  readonly workspaceId: number;
  readonly budget: "agent_day" | "workspace_month";
  /** The agent's name, for a daily budget. */
  readonly agent: string | null;
  readonly percent: 80 | 100;
  /** Micro-credits, including the last charge. 0 if the budget is 0, which counts as all spent. */
  readonly spent: number;
  /** The budget, in micro-credits. */
  readonly limit: number;
}

export interface BudgetParts {
  readonly workspaces: Pick<Workspaces, "get">;
  readonly clock: Clock;
  readonly reservations: Reservations;
  readonly months: MonthTotals;
  /** The first entry that matches a tool's name applies. A tool without a match is free. */
  readonly toolPrices: readonly ToolPrice[];
  /** Records a crossing, in the transaction that causes it. */
  recordCrossing(tx: Tx, crossing: BudgetCrossing): Promise<void>;
}

/**
 * How often a waiting call tries again on its own. A new day, a clock change or a raised budget releases no
 * reservation.
 */
const LOOK_MS = 1_000;

/** The reported shares of a budget, in micro-credits. Integer arithmetic, so four fifths are rounded up. */
const TOLD = [
  { percent: 80, part: (limit: number) => limit - Math.floor(limit / 5) },
  { percent: 100, part: (limit: number) => limit },
] as const;

/** The call has to wait for a budget. Thrown out of its transaction, which is then rolled back. */
class BudgetUnavailable extends Error {
  override readonly name = "BudgetUnavailable";
}

/**
 * Credit budgets of agents (per day) and workspaces (per month), in UTC. The expected cost of in-flight calls is
 * reserved. A call that finds everything reserved waits until another one is settled, and tries again. So
 * no call is refused before its budget is spent. Together, calls overspend at most by the amount by which each
 * exceeds its estimate, plus the cost of the last one.
 *
 * A reservation belongs to a budget, not to one of its days: a call in flight at midnight is charged to the day on
 * which it ends.
 */
export class Budgets {
  /** Emits each crossing once it is on disk. */
  readonly crossed = new Signal<BudgetCrossing>();
  readonly #parts: BudgetParts;
  readonly #reservations: Reservations;
  readonly #months: MonthTotals;
  /** Lists, because what was compiled is kept by list. */
  readonly #toolPrices: readonly { readonly patterns: readonly string[]; readonly micros: number }[];

  constructor(parts: BudgetParts) {
    this.#parts = parts;
    this.#reservations = parts.reservations;
    this.#months = parts.months;
    this.#toolPrices = parts.toolPrices.map(({ pattern, micros }) => ({ patterns: [pattern], micros }));
  }

  /** Number of this process's calls with a reservation. */
  get reservations(): number {
    return this.#reservations.leases;
  }

  /** The price of a tool call, in micro-credits. */
  toolPrice(tool: string): number {
    return this.#toolPrices.find(({ patterns }) => matchesAny(patterns, tool))?.micros ?? 0;
  }

  /** @throws Problem 402 `credits_exhausted` if a budget is spent. Reservations do not count. */
  async check(sql: Pick<Sql, "get">, spender: Spender): Promise<void> {
    await this.#left(sql, spender, () => this.spentThisMonth(sql, spender.workspaceId));
  }

  /** Micro-credits that a workspace has spent this month (UTC). */
  spentThisMonth(sql: Pick<Sql, "get">, workspaceId: number): Promise<number> {
    return this.#months.find(sql, workspaceId, this.#parts.clock.now());
  }

  /**
   * Tries to begin a call. If it has to wait for a budget, tries again each time something may have been released.
   * `attempt` runs one transaction and calls `reserve` in it at most once. The reservation exists if the transaction
   * succeeds, until `release`.
   * @throws the signal's reason if it aborts while the call waits; whatever `attempt` throws
   */
  async admit<Result>(
    signal: AbortSignal,
    attempt: (reserve: ReserveCredits) => Promise<Result>,
  ): Promise<Result> {
    const line: { place: QueueTicket | null } = { place: null };
    const reserve: ReserveCredits = async (tx, claim) => {
      const { workspaceId } = claim.spender;
      const spentThisMonth = () => this.#months.findIn(tx, workspaceId, this.#parts.clock.now());
      const left = await this.#left(tx, claim.spender, spentThisMonth);
      const expected = left.length === 0 ? 0 : claim.expected();
      if (expected === 0) return 0;
      // A call that has waited its turn in one queue need not queue again in another.
      const asked = this.#reservations.withoutRoom(tx, workspaceId, left, line.place === null);
      const full = asked instanceof Promise ? await asked : asked;
      if (full !== null) {
        if (line.place?.budget !== full) {
          line.place?.leave();
          line.place = this.#reservations.join(full);
        }
        throw new BudgetUnavailable();
      }
      const budgets = left.map(({ budget }) => budget);
      const { owner } = claim;
      if (!this.#reservations.take(tx, { workspaceId, owner, budgets, amount: expected })) {
        throw new Error(`${owner} already has a reservation`);
      }
      return expected;
    };
    try {
      for (;;) {
        try {
          return await attempt(reserve);
        } catch (error) {
          if (!(error instanceof BudgetUnavailable) || line.place === null) throw error;
        }
        await this.#turn(line.place, signal);
      }
    } finally {
      line.place?.leave();
    }
  }

  /**
   * Ends a call's reservation together with its charge, in the transaction of its outcome. `release` MUST follow its
   * commit. Has no effect if this process has no such reservation.
   */
  settle(tx: Tx, workspaceId: number, owner: string): void {
    this.#reservations.settle(tx, workspaceId, owner);
  }

  /** Ends the reservation of a process that has died, in the transaction that charges its lost call. */
  settleLost(tx: Tx, workspaceId: number, owner: string): void {
    this.#reservations.settleLost(tx, workspaceId, owner);
  }

  /** Releases a call's reservation, once its charge is on disk or if it costs nothing. Can be called repeatedly. */
  release(owner: string): void {
    this.#reservations.release(owner);
  }

  /** Charges a call's cost, in micro-credits. MUST be called in the transaction of its outcome. */
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
    this.#months.add(tx, workspaceId, now, micros);
    if (agent && day.limit !== null) {
      const { spent, limit } = day;
      await this.#tell(tx, { workspaceId, budget: "agent_day", agent: agent.name, spent, limit }, micros);
    }
    const { creditsPerMonth: limit } = workspaces.get(workspaceId);
    if (limit !== null) {
      const spent = await this.#months.findIn(tx, workspaceId, now);
      await this.#tell(tx, { workspaceId, budget: "workspace_month", agent: null, spent, limit }, micros);
    }
  }

  /**
   * Reports the shares of a new budget that are already spent. MUST be called in the transaction that sets it.
   * Amounts in micro-credits; null: no budget. `agent`: for a daily budget; null: for the workspace's month.
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
      : await this.#months.findIn(tx, workspaceId, now);
    const facts = agent
      ? { workspaceId, budget: "agent_day" as const, agent: agent.name, spent, limit: after }
      : { workspaceId, budget: "workspace_month" as const, agent: null, spent, limit: after };
    await this.#tellOnce(tx, facts, (part) => before !== null && spent >= part(before));
  }

  async #tell(tx: Tx, facts: Omit<BudgetCrossing, "percent">, micros: number): Promise<void> {
    await this.#tellOnce(tx, facts, (part) => facts.spent - micros >= part(facts.limit));
  }

  /** @param wasReached whether this share was spent, and reported, before */
  async #tellOnce(
    tx: Tx,
    facts: Omit<BudgetCrossing, "percent">,
    wasReached: (part: (limit: number) => number) => boolean,
  ): Promise<void> {
    for (const { percent, part } of TOLD) {
      if (facts.spent < part(facts.limit) || wasReached(part)) continue;
      const crossing = { ...facts, percent };
      await this.#parts.recordCrossing(tx, crossing);
      tx.onCommit(() => this.crossed.emit(crossing));
    }
  }

  /**
   * What is left of each budget, ignoring reservations; always more than 0. @throws Problem 402 `credits_exhausted`
   */
  async #left(
    sql: Pick<Sql, "get">,
    { workspaceId, agent }: Spender,
    spentThisMonth: () => Promise<number>,
  ): Promise<UnspentBudget[]> {
    const { workspaces, clock } = this.#parts;
    const { creditsPerMonth } = workspaces.get(workspaceId);
    const left: UnspentBudget[] = [];
    if (agent !== null && agent.creditsPerDay !== null) {
      const micros = agent.creditsPerDay - (await spentToday(sql, workspaceId, agent.id, clock.now()));
      if (micros <= 0) {
        const credits = toCredits(agent.creditsPerDay);
        throw exhausted(
          `The agent ${agent.name} has spent its budget of ${credits} credits for today (UTC).`,
        );
      }
      left.push({ budget: `day:${workspaceId}:${agent.id}`, micros });
    }
    if (creditsPerMonth !== null) {
      const micros = creditsPerMonth - (await spentThisMonth());
      if (micros <= 0) {
        const credits = toCredits(creditsPerMonth);
        throw exhausted(`The workspace has spent its budget of ${credits} credits for this month (UTC).`);
      }
      left.push({ budget: `month:${workspaceId}`, micros });
    }
    return left;
  }

  async #turn(place: QueueTicket, signal: AbortSignal): Promise<void> {
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
