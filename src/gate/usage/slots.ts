import type { Clock } from "../../base/clock.ts";
import type { Db, Tx } from "../../store/db.ts";
import { addUsage, decodeUsage, encodeUsage, mergeUsage, noUsage, type UsageFacts } from "./facts.ts";
import { FIVE_MINUTES_MS, slotOf, type UsageCount } from "./record.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

/** The resolutions of statistics, and how long each is kept. Milliseconds. */
export const USAGE_STEPS = {
  "5m": { width: FIVE_MINUTES_MS, kept: 48 * HOUR_MS },
  "1h": { width: HOUR_MS, kept: 400 * DAY_MS },
  "1d": { width: DAY_MS, kept: 400 * DAY_MS },
} as const;
export type UsageStep = keyof typeof USAGE_STEPS;

/** Replaces an agent's id: the whole workspace, including callers that do not act as an agent. */
export const EVERYBODY = -1;

/** Rows of `usage_counts` moved per transaction; every other writer waits for it. */
const MOVED = 200;
/** Rows of `usage_slots` deleted per transaction. */
const DELETED = 500;
/** The cost, in rows, of visiting an agent that has nothing to delete. */
const LOOK = 10;

/** The columns of `usage_counts`, named as in `UsageCount`. */
export const COUNT_COLUMNS = `slot, agent_id AS "agentId", kind, name, outcome, bucket, count, credits,
  input_tokens AS "inputTokens", output_tokens AS "outputTokens"`;

/** The oldest slot of a step that is still kept. */
export function oldestKept(step: UsageStep, now: number): number {
  const { width, kept } = USAGE_STEPS[step];
  return slotOf(now - kept, width);
}

/**
 * Maintains the statistics: moves counts into slots and deletes old slots. On one node at a time, since nodes that move the
 * same rows would only undo each other's work; each count is moved once even so.
 */
export class UsageSlots {
  readonly #db: Db;
  readonly #clock: Clock;
  readonly #workspaceIds: () => readonly number[];
  readonly #isOnDuty: () => boolean;
  #lastExpiry = Number.NEGATIVE_INFINITY;

  /** @param isOnDuty whether this node maintains the statistics now */
  constructor(db: Db, clock: Clock, workspaceIds: () => readonly number[], isOnDuty = () => true) {
    this.#isOnDuty = isOnDuty;
    this.#db = db;
    this.#clock = clock;
    this.#workspaceIds = workspaceIds;
  }

  /** Called every few seconds. @throws StoreUnavailable; the next call continues from there */
  async keepHouse(): Promise<void> {
    if (!this.#isOnDuty()) return;
    const now = this.#clock.now();
    const current = slotOf(now, FIVE_MINUTES_MS);
    for (const workspaceId of this.#workspaceIds()) {
      while (await this.#db.tx(null, (tx) => moveCounts(tx, workspaceId, current)));
    }
    const hour = slotOf(now, HOUR_MS);
    if (hour === this.#lastExpiry) return;
    for (const workspaceId of this.#workspaceIds()) await this.#expire(workspaceId, now);
    this.#lastExpiry = hour;
  }

  async #expire(workspaceId: number, now: number): Promise<void> {
    for (const step of ["5m", "1h", "1d"] as const) {
      const { width } = USAGE_STEPS[step];
      const oldest = oldestKept(step, now);
      let after: number | null = EVERYBODY - 1;
      while (after !== null) {
        const from: number = after;
        after = await this.#db.tx(null, (tx) => deleteSlots(tx, { workspaceId, width, oldest, after: from }));
      }
    }
  }
}

/**
 * Moves some of the oldest counts, from slots before `current`, into the slots of each width. Adding and deleting
 * happen in one transaction, so each count exists exactly once. Late counts are moved the next time. It sees one state of
 * the store: on PostgreSQL it is repeated if another node has changed one of these rows, and does not delete new ones.
 * @returns whether there are more
 */
async function moveCounts(tx: Tx, workspaceId: number, current: number): Promise<boolean> {
  const rows = await tx.all<UsageCount>(
    `SELECT ${COUNT_COLUMNS} FROM usage_counts WHERE workspace_id = $1 AND slot < $2
     ORDER BY slot, agent_id, kind, name, outcome, bucket LIMIT $3`,
    [workspaceId, current, MOVED],
  );
  const last = rows.at(-1);
  if (!last) return false;
  const added = new Map<string, { width: number; agentId: number; slot: number; facts: UsageFacts }>();
  for (const row of rows) {
    for (const { width } of Object.values(USAGE_STEPS)) {
      const slot = slotOf(row.slot, width);
      for (const agentId of [row.agentId, EVERYBODY]) {
        const key = `${width} ${agentId} ${slot}`;
        const into = added.get(key) ?? { width, agentId, slot, facts: noUsage() };
        added.set(key, into);
        addUsage(into.facts, row);
      }
    }
  }
  for (const { width, agentId, slot, facts } of added.values()) {
    const key = [workspaceId, width, agentId, slot];
    const known = await tx.get<{ credits: number; facts: string }>(
      `SELECT credits, facts FROM usage_slots
       WHERE workspace_id = $1 AND width = $2 AND agent_id = $3 AND slot = $4`,
      key,
    );
    if (known) mergeUsage(facts, decodeUsage(known.credits, known.facts));
    tx.write(
      `INSERT INTO usage_slots (workspace_id, width, agent_id, slot, credits, facts) VALUES ($1, $2, $3, $4, $5, $6)
       ON CONFLICT (workspace_id, width, agent_id, slot) DO UPDATE
         SET credits = excluded.credits, facts = excluded.facts`,
      [...key, facts.credits, encodeUsage(facts)],
    );
  }
  tx.write(
    `DELETE FROM usage_counts
     WHERE workspace_id = $1 AND (slot, agent_id, kind, name, outcome, bucket) <= ($2, $3, $4, $5, $6, $7)`,
    [workspaceId, last.slot, last.agentId, last.kind, last.name, last.outcome, last.bucket],
  );
  return rows.length === MOVED;
}

/**
 * Deletes some of the slots before `oldest`, of agents with ids greater than `after`.
 * @returns the agent after which to continue; null if nothing is left
 */
async function deleteSlots(
  tx: Tx,
  place: {
    readonly workspaceId: number;
    readonly width: number;
    readonly oldest: number;
    readonly after: number;
  },
): Promise<number | null> {
  const { workspaceId, width, oldest } = place;
  let { after } = place;
  for (let left = DELETED; left > 0; ) {
    // One index lookup per agent: `DISTINCT` would read all rows.
    const next = await tx.get<{ id: number | null }>(
      "SELECT MIN(agent_id) AS id FROM usage_slots WHERE workspace_id = $1 AND width = $2 AND agent_id > $3",
      [workspaceId, width, after],
    );
    const agentId = next?.id ?? null;
    if (agentId === null) return null;
    const deleted = await tx.run(
      `DELETE FROM usage_slots WHERE workspace_id = $1 AND width = $2 AND agent_id = $3 AND slot IN (
         SELECT slot FROM usage_slots WHERE workspace_id = $1 AND width = $2 AND agent_id = $3 AND slot < $4
         ORDER BY slot LIMIT $5)`,
      [workspaceId, width, agentId, oldest, left],
    );
    if (deleted < left) after = agentId;
    left -= Math.max(deleted, LOOK);
  }
  return after;
}
