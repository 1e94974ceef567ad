import { cappedMicros, cappedSum } from "../../base/credits.ts";
import type { CommitWork, SqlValue, Tx } from "../../store/db.ts";
import { insertRowsSql } from "../../store/many-rows.ts";
import { countsOf, type UsageCount, type UsageRecord } from "./record.ts";

/** A row to be added to `usage_counts`. */
export interface AddedCount {
  readonly workspaceId: number;
  readonly row: UsageCount;
}

/** Rows to be added, one for each key. */
export class AddedCounts {
  readonly #rows = new Map<string, AddedCount>();

  get size(): number {
    return this.#rows.size;
  }

  has(added: AddedCount): boolean {
    return this.#rows.has(keyOf(added));
  }

  add(added: AddedCount): void {
    const key = keyOf(added);
    const known = this.#rows.get(key);
    this.#rows.set(key, known ? { ...known, row: sumOf(known.row, added.row) } : added);
  }

  /**
   * In the order of their keys. All transactions add rows in this order, so those of several nodes do not wait for each other
   * in a circle.
   */
  values(): AddedCount[] {
    if (this.#rows.size === 1) return [...this.#rows.values()];
    return [...this.#rows].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, added]) => added);
  }
}

/** Adds a finished call or task to the statistics, in the transaction of its entry. */
export function recordUsage(tx: Tx, usage: UsageRecord): void {
  const counts = tx.shared(CommitCounts);
  for (const row of countsOf(usage)) counts.add(tx, { workspaceId: usage.workspaceId, row });
}

/** The counts of all transactions of a commit: most have the same few keys. */
class CommitCounts implements CommitWork {
  readonly #added = new Set<AddedCount>();

  add(tx: Tx, added: AddedCount): void {
    this.#added.add(added);
    tx.onRollback(() => this.#added.delete(added));
  }

  async write(tx: Tx): Promise<void> {
    const sums = new AddedCounts();
    for (const added of this.#added) sums.add(added);
    addCounts(tx, sums.values());
  }
}

/** Rows of one statement. */
const ROWS = 8;
const COLUMNS = [
  ...["workspace_id", "slot", "agent_id", "kind", "name", "outcome", "bucket"],
  ...["count", "credits", "input_tokens", "output_tokens"],
];

/** @param added rows with different keys, in their order: see `AddedCounts.values` */
export function addCounts(tx: Tx, added: readonly AddedCount[]): void {
  for (let from = 0; from < added.length; from += ROWS) {
    const rows = added.slice(from, from + ROWS);
    tx.write(ADD[rows.length - 1] as string, rows.flatMap(valuesOf));
  }
}

const ADD = Array.from({ length: ROWS }, (_, index) => addRowsSql(index + 1));

function addRowsSql(rows: number): string {
  return `${insertRowsSql(`usage_counts (${COLUMNS.join(", ")})`, COLUMNS.length, rows)}
    ON CONFLICT (workspace_id, slot, agent_id, kind, name, outcome, bucket) DO UPDATE
      SET count = usage_counts.count + excluded.count, credits = ${cappedSum("usage_counts.credits", "excluded.credits")},
        input_tokens = usage_counts.input_tokens + excluded.input_tokens,
        output_tokens = usage_counts.output_tokens + excluded.output_tokens`;
}

function valuesOf({ workspaceId, row }: AddedCount): SqlValue[] {
  const { slot, agentId, kind, name, outcome, bucket, count, credits, inputTokens, outputTokens } = row;
  const key = [workspaceId, slot, agentId, kind, name, outcome, bucket];
  return [...key, count, credits, inputTokens, outputTokens];
}

function keyOf({ workspaceId, row }: AddedCount): string {
  const { slot, agentId, kind, name, outcome, bucket } = row;
  return `${workspaceId} ${slot} ${agentId} ${kind} ${outcome} ${bucket} ${name}`;
}

/** The sum of two rows with the same key. */
function sumOf(one: UsageCount, other: UsageCount): UsageCount {
  return {
    ...one,
    count: one.count + other.count,
    credits: cappedMicros(one.credits + other.credits),
    inputTokens: one.inputTokens + other.inputTokens,
    outputTokens: one.outputTokens + other.outputTokens,
  };
}
