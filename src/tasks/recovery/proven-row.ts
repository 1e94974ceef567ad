import { LedgerChanged } from "../../ledger/ledger-changed.ts";
import type { LedgerLists } from "../../ledger/reading/lists.ts";
import { type ParsedEntry, parsedEntry } from "../../ledger/reading/parsed-entry.ts";
import type { Db } from "../../store/db.ts";
import { type StoredRow, sealedColumns } from "../../store/seals/seals.ts";
import { lastSeq } from "../rows/tasks.ts";
import type { Task, TaskFacts } from "../task.ts";

interface ProvenRowParts {
  readonly db: Db;
  readonly lists: Pick<LedgerLists, "entry">;
}

const ROW = `SELECT ${sealedColumns("tasks")} FROM tasks WHERE workspace_id = $1 AND id = $2`;

/**
 * The name of a task's agent for an entry about the task. The row is trusted if its seal matches. Tasks that ended in
 * an earlier version have no seal, so the entry that dispatched the task is read. A changed row is reported.
 * @returns undefined if the row does not name that entry either
 */
export async function provenAgent(
  { db, lists }: ProvenRowParts,
  task: TaskFacts,
): Promise<string | undefined> {
  const { workspaceId, id } = task;
  const row = await db.urgent.get<StoredRow<"tasks">>(ROW, [workspaceId, id]);
  if (row && db.seals.isIntact("tasks", row)) return task.agent;
  try {
    const dispatch = await dispatchOf(lists, task);
    const agent = dispatch && (dispatch.agent ?? task.agent);
    if (agent !== task.agent || row?.seal) db.seals.report("tasks", { workspace_id: workspaceId, id });
    return agent;
  } catch (error) {
    // Already reported when the ledger was read.
    if (!(error instanceof LedgerChanged)) throw error;
    return undefined;
  }
}

/**
 * Requires that a finished task's row names the entries that dispatched and ended it. MUST be called before a person's
 * decision on its output is signed.
 * @throws LedgerChanged, and reports the row, if it does not
 */
export async function requireProvenEnd({ db, lists }: ProvenRowParts, task: Task): Promise<void> {
  const { workspaceId, id, dispatchSeq, status } = task;
  const dispatch = await dispatchOf(lists, task);
  const endSeq = await lastSeq(db, task);
  const end = await entryAt(lists, workspaceId, endSeq);
  const isEnd = end?.action === "task.dispatch" && end.phase === "outcome" && end.ref === dispatchSeq;
  const isSame = dispatch?.actor === task.createdBy && (dispatch.agent ?? task.agent) === task.agent;
  if (isSame && isEnd && end.task === id && end.outcome === status) return;
  db.seals.report("tasks", { workspace_id: workspaceId, id });
  throw new LedgerChanged(
    `the stored task ${id} does not name the entries that dispatched and ended it`,
    endSeq,
  );
}

/**
 * Requires that a finished task's row is unchanged since this server wrote it, except for the columns of its results.
 * Tasks that ended in an earlier version have no seal, and nothing to continue.
 * @throws LedgerChanged, and reports the row, if it was changed
 */
export async function requireSealed(
  { db }: Pick<ProvenRowParts, "db">,
  { workspaceId, id, dispatchSeq }: Pick<Task, "workspaceId" | "id" | "dispatchSeq">,
): Promise<void> {
  const row = await db.get<StoredRow<"tasks">>(ROW, [workspaceId, id]);
  const isEarlier = row?.seal === null && row.continues === null && row.input_form === null;
  if (row && (isEarlier || db.seals.fits("tasks", row))) return;
  throw new LedgerChanged(`the stored task ${id} was not written by this server`, dispatchSeq);
}

/** The entry that dispatched a task, if its row names that entry. */
async function dispatchOf(lists: ProvenRowParts["lists"], task: TaskFacts): Promise<ParsedEntry | undefined> {
  const entry = await entryAt(lists, task.workspaceId, task.dispatchSeq);
  const isDispatch = entry?.action === "task.dispatch" && entry.phase === "intent" && entry.task === task.id;
  return isDispatch ? entry : undefined;
}

async function entryAt(
  lists: ProvenRowParts["lists"],
  workspaceId: number,
  seq: number,
): Promise<ParsedEntry | undefined> {
  const stored = await lists.entry(workspaceId, seq);
  return stored && parsedEntry(stored.bytes);
}
