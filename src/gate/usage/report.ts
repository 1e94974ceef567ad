import type { Db, Sql } from "../../store/db.ts";
import { addUsage, decodeUsage, mergeUsage, noUsage, type UsageFacts } from "./facts.ts";
import { NO_AGENT, slotOf, type UsageCount } from "./record.ts";
import { COUNT_COLUMNS, EVERYBODY } from "./slots.ts";

/** The number of names listed individually. */
const TOP = 8;

export interface UsageQuestion {
  readonly workspaceId: number;
  /** Ids of the agents to report. Null: all callers, including those that act as no agent. */
  readonly agentIds: readonly number[] | null;
  /** The start of the first slot and the end of the last one. Milliseconds, multiples of the width. */
  readonly from: number;
  readonly to: number;
  /** Milliseconds per slot: one of `USAGE_STEPS`. */
  readonly width: number;
}

/** Micro-credits by slot for the names that cost the most, and for all others together. */
export interface Breakdown {
  /** Highest first. The name is null for callers that do not act as an agent. */
  readonly top: readonly { readonly name: string | null; readonly micros: readonly number[] }[];
  /** Null: there are no others. */
  readonly other: readonly number[] | null;
}

export interface UsageReport {
  /** The start of each slot, in milliseconds. */
  readonly starts: readonly number[];
  /** One per slot. */
  readonly slots: readonly UsageFacts[];
  /** The sum of all slots. */
  readonly total: UsageFacts;
  readonly byAgent: Breakdown;
  readonly byModel: Breakdown;
  readonly byTool: Breakdown;
}

interface CreditsRow {
  readonly slot: number;
  readonly agentId: number;
  readonly credits: number;
}

export type UsageReports = (question: UsageQuestion) => Promise<UsageReport>;

/** @param isShared whether other nodes may move counts while they are read: then a report reads one state of the store */
export function openUsageReports(db: Db, isShared: boolean): UsageReports {
  if (!isShared) return (question) => usageReport(db, question);
  return (question) => db.tx(null, (tx) => usageReport(tx, question), { turnOf: question.workspaceId });
}

/**
 * Reports usage slot by slot. Reads one row per slot, the agents' credits from their index, and the counts of the
 * last minutes.
 */
export async function usageReport(db: Pick<Sql, "all">, question: UsageQuestion): Promise<UsageReport> {
  const { from, to, width } = question;
  const named = await agentsByCredits(db, question);
  const top = named.slice(0, TOP);
  // With one process, everything is read in one turn of the event loop, in which nothing is committed. So rows that move from counts to
  // slots are found exactly once, and the agents' spending matches the total.
  const [kept, counts, spent] = await Promise.all([
    keptSlots(db, question),
    openCounts(db, question),
    creditsOf(
      db,
      question,
      top.flatMap(({ ids }) => ids),
    ),
  ]);

  const starts = Array.from({ length: (to - from) / width }, (_, index) => from + index * width);
  const slots = starts.map(noUsage);
  const at = (time: number): UsageFacts => {
    const facts = slots[(slotOf(time, width) - from) / width];
    if (!facts) throw new Error("a slot outside the requested range was read");
    return facts;
  };
  for (const { slot, credits, facts } of kept) mergeUsage(at(slot), decodeUsage(credits, facts));
  for (const row of counts) addUsage(at(row.slot), row);
  const total = noUsage();
  for (const facts of slots) mergeUsage(total, facts);

  const nameOf = new Map(top.flatMap(({ name, ids }) => ids.map((id) => [id, name])));
  const ofAgents = new Map<string | null, number[]>();
  // A client's call has a row as a model call too, which has the same credits.
  const once = counts.filter(({ kind }) => kind !== "client");
  for (const { slot, agentId, credits } of [...spent, ...once]) {
    const name = nameOf.get(agentId);
    if (name === undefined || credits === 0) continue;
    const micros = ofAgents.get(name) ?? starts.map(() => 0);
    ofAgents.set(name, micros);
    const index = (slotOf(slot, width) - from) / width;
    micros[index] = (micros[index] ?? 0) + credits;
  }
  return {
    starts,
    slots,
    total,
    byAgent: breakdown(slots, ({ credits }) => credits, ofAgents),
    byModel: breakdown(slots, ({ models }) => sum(models.values()), largest(slots, total, "models")),
    byTool: breakdown(slots, ({ tools }) => sum(tools.values()), largest(slots, total, "tools")),
  };
}

/** The rows of all callers together, or of the requested agents. */
async function keptSlots(
  db: Pick<Sql, "all">,
  { workspaceId, agentIds, from, to, width }: UsageQuestion,
): Promise<{ slot: number; credits: number; facts: string }[]> {
  const found = await Promise.all(
    (agentIds ?? [EVERYBODY]).map((id) =>
      db.all<{ slot: number; credits: number; facts: string }>(
        `SELECT slot, credits, facts FROM usage_slots
         WHERE workspace_id = $1 AND width = $2 AND agent_id = $3 AND slot >= $4 AND slot < $5`,
        [workspaceId, width, id, from, to],
      ),
    ),
  );
  return found.flat();
}

/** Counts not yet moved into slots: usually those of the last five minutes. */
async function openCounts(
  db: Pick<Sql, "all">,
  { workspaceId, agentIds, from, to }: UsageQuestion,
): Promise<readonly UsageCount[]> {
  const rows = await db.all<UsageCount>(
    `SELECT ${COUNT_COLUMNS} FROM usage_counts WHERE workspace_id = $1 AND slot >= $2 AND slot < $3`,
    [workspaceId, from, to],
  );
  return agentIds === null ? rows : rows.filter(({ agentId }) => agentIds.includes(agentId));
}

/** These agents' spending, slot by slot, without the counts that have not been moved yet. */
async function creditsOf(
  db: Pick<Sql, "all">,
  { workspaceId, from, to, width }: UsageQuestion,
  ids: readonly number[],
): Promise<readonly CreditsRow[]> {
  const found = await Promise.all(
    ids.map((id) =>
      db.all<CreditsRow>(
        `SELECT slot, agent_id AS "agentId", credits FROM usage_slots
         WHERE workspace_id = $1 AND width = $2 AND agent_id = $3 AND slot >= $4 AND slot < $5`,
        [workspaceId, width, id, from, to],
      ),
    ),
  );
  return found.flat();
}

/** Names with all ids that have had them, highest spending first, without those that spent nothing. */
async function agentsByCredits(
  db: Pick<Sql, "all">,
  { workspaceId, agentIds, from, to, width }: UsageQuestion,
): Promise<readonly { readonly name: string | null; readonly ids: readonly number[] }[]> {
  const [agents, open] = await Promise.all([
    // One range of the index per agent, in its order: nothing is sorted.
    db.all<{ id: number; name: string | null; credits: number | null }>(
      `SELECT known.id, known.name, (
         SELECT SUM(CAST(credits AS DOUBLE PRECISION)) FROM usage_slots
         WHERE workspace_id = $1 AND width = $2 AND agent_id = known.id AND slot >= $3 AND slot < $4
       ) AS credits
       FROM (SELECT id, name FROM agents WHERE workspace_id = $1 UNION ALL SELECT ${NO_AGENT}, NULL) AS known`,
      [workspaceId, width, from, to],
    ),
    db.all<{ id: number; credits: number }>(
      `SELECT agent_id AS id, SUM(CAST(credits AS DOUBLE PRECISION)) AS credits FROM usage_counts
       WHERE workspace_id = $1 AND slot >= $2 AND slot < $3 AND kind <> 'client' GROUP BY agent_id`,
      [workspaceId, from, to],
    ),
  ]);
  const recent = new Map(open.map(({ id, credits }) => [id, credits]));
  const found = new Map<
    string | null,
    { readonly name: string | null; readonly ids: number[]; micros: number }
  >();
  for (const { id, name, credits } of agents) {
    const micros = (credits ?? 0) + (recent.get(id) ?? 0);
    if (micros === 0 || (agentIds !== null && !agentIds.includes(id))) continue;
    const known = found.get(name) ?? { name, ids: [], micros: 0 };
    found.set(name, known);
    known.ids.push(id);
    known.micros += micros;
  }
  return [...found.values()].sort((a, b) => b.micros - a.micros);
}

/** Micro-credits by slot, for the names that cost the most over all slots. */
function largest(
  slots: readonly UsageFacts[],
  total: UsageFacts,
  group: "models" | "tools",
): ReadonlyMap<string, readonly number[]> {
  const names = [...total[group]].sort(([, a], [, b]) => b - a).slice(0, TOP);
  return new Map(names.map(([name]) => [name, slots.map((facts) => facts[group].get(name) ?? 0)]));
}

/** @param all total spending in a slot; `other` is what remains of it */
function breakdown(
  slots: readonly UsageFacts[],
  all: (facts: UsageFacts) => number,
  top: ReadonlyMap<string | null, readonly number[]>,
): Breakdown {
  const shown = [...top].map(([name, micros]) => ({ name, micros }));
  shown.sort((a, b) => sum(b.micros) - sum(a.micros));
  const other = slots.map((facts, index) => all(facts) - sum(shown.map(({ micros }) => micros[index] ?? 0)));
  return { top: shown, other: other.some((micros) => micros !== 0) ? other : null };
}

function sum(values: Iterable<number>): number {
  let all = 0;
  for (const value of values) all += value;
  return all;
}
