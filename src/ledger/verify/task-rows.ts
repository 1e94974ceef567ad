import type { ReadOnlyDatabase } from "../../store/sqlite/read-only.ts";
import { parsedEntry } from "../reading/parsed-entry.ts";
import { type CallRow, type ComparedTaskRow, ProvenTask, taskDifference } from "../reading/proven-task.ts";
import type { VerifiedEntryFields } from "./form.ts";
import { counted, type VerificationReport } from "./report.ts";
import { FIRST_WITH_SEALS } from "./sealed-rows.ts";
import type { TreePosition } from "./walk.ts";

/** The maximum number of tasks open at the same entry that are compared. */
const OPEN = 100_000;
/** Maximum number of differences that are kept. */
const KEPT = 1_000;
// Reads by the keys, whatever other indexes contain. Rows that are missing from the key's index are found when the
// pages are checked (`checkedTables`).
const TASK = `SELECT id, agent, tier, created_by AS "createdBy", dispatch_seq AS "dispatchSeq", model, credits,
  input_tokens AS "inputTokens", output_tokens AS "outputTokens", steps, open_model_call AS "openModelCall",
  open_reserved AS "openReserved", status, error_code AS "errorCode", finish_seq AS "finishSeq",
  finished_at AS "finishedAt"
  FROM main.tasks INDEXED BY sqlite_autoindex_tasks_1 WHERE workspace_id = $1`;
const CALLS = `SELECT id, tool, status, intent_seq AS "intentSeq", outcome_seq AS "outcomeSeq", price
  FROM main.tool_calls NOT INDEXED WHERE workspace_id = $1 AND task_id = $2`;
const ENTRY =
  "SELECT CAST(bytes AS TEXT) AS bytes FROM main.ledger NOT INDEXED WHERE workspace_id = $1 AND seq = $2";
const LABEL = "Tasks";
const OPEN_STATUSES = new Set(["queued", "running", "awaiting_approval"]);

interface StoredTask extends Omit<ComparedTaskRow, "toolsCalled"> {
  readonly id: string;
  readonly status: string;
  readonly errorCode: string | null;
  readonly finishSeq: number | null;
  readonly finishedAt: number | null;
}

interface Difference {
  readonly code: "row_changed" | "reference_differs";
  readonly message: string;
  readonly seq: number;
}

/**
 * Compares the rows of tasks and of their calls, which are not signed, with the entries about them, and the end of
 * each task with what its calls cost. Nothing is reported if entries were changed, because rows then differ as well.
 */
export class TaskRowCheck {
  readonly #database: ReadOnlyDatabase;
  readonly #workspaceId: number;
  readonly #report: VerificationReport;
  readonly #open = new Map<string, ProvenTask>();
  readonly #differences: Difference[] = [];
  #compared = 0;

  constructor(database: ReadOnlyDatabase, workspaceId: number, report: VerificationReport) {
    this.#database = database;
    this.#workspaceId = workspaceId;
    this.#report = report;
  }

  /** MUST be called with each step, in order. */
  take({ entry }: TreePosition): void {
    if (entry?.task === undefined || this.#database.schemaVersion < FIRST_WITH_SEALS) return;
    const isDispatch = entry.action === "task.dispatch" && entry.phase === "intent";
    if (isDispatch && this.#open.size < OPEN) this.#open.set(entry.task, new ProvenTask());
    const proven = this.#open.get(entry.task);
    if (!proven) return;
    proven.take(entry.seq, entry);
    if (!proven.end) return;
    this.#open.delete(entry.task);
    this.#compareEnd(entry, proven);
    this.#compare(entry.task, proven);
  }

  /** @param isIntact whether no entry was found changed */
  end(isIntact: boolean): void {
    if (!isIntact || this.#database.schemaVersion < FIRST_WITH_SEALS) return;
    for (const [id, proven] of this.#open) this.#compare(id, proven);
    const tasks = this.#database.get<{ count: number }>(
      "SELECT COUNT(*) AS count FROM main.tasks INDEXED BY sqlite_autoindex_tasks_1 WHERE workspace_id = $1",
      [this.#workspaceId],
    );
    if (tasks?.count !== this.#compared) this.#findUnproven();
    for (const { code, message, seq } of this.#differences) this.#report.tampered(code, message, seq);
    if (this.#differences.length > 0) return;
    this.#report.fact(LABEL, `the rows of ${counted(this.#compared)} agree with the ledger`);
  }

  #compare(id: string, proven: ProvenTask): void {
    const { dispatch, end } = proven;
    const row = this.#database.get<StoredTask>(`${TASK} AND id = $2`, [this.#workspaceId, id]);
    this.#compared += row ? 1 : 0;
    const seq = end?.seq ?? dispatch?.seq ?? 0;
    const difference = row ? this.#differenceOf(row, proven) : "id";
    if (difference === null) return;
    const what = row ? `its ${difference} differs from the ledger` : "the row is missing";
    this.#keep({
      code: "row_changed",
      message: `The row of task ${id} was not written by the server: ${what}.`,
      seq,
    });
  }

  #differenceOf(row: StoredTask, proven: ProvenTask): string | null {
    const { end, calls } = proven;
    if (row.finishSeq !== (end?.seq ?? null)) return "finish_seq";
    if ((row.finishedAt !== null) !== (end !== null)) return "finished_at";
    if (end ? row.status !== end.outcome : !OPEN_STATUSES.has(row.status)) return "status";
    if (row.errorCode !== (end?.code ?? null)) return "error_code";
    // Earlier versions did not name calls, so the rows of their tasks' calls cannot be distinguished.
    const isNamed = calls.every((call) => call.id !== null);
    if (!isNamed && end) return taskDifference({ ...row, toolsCalled: rowsLike(proven) }, proven);
    const toolsCalled = this.#database.all<CallRow>(CALLS, [this.#workspaceId, row.id]);
    return taskDifference({ ...row, toolsCalled }, proven);
  }

  #compareEnd({ seq, task, code, credits, detail }: VerifiedEntryFields, { usage }: ProvenTask): void {
    const { input_tokens: input, output_tokens: output, steps } = detail ?? {};
    // An earlier version ended tasks with changed rows without recording their tokens.
    const isCounted = input !== undefined && code !== "internal";
    const isSame =
      (credits ?? usage.credits) === usage.credits &&
      (!isCounted || (input === usage.inputTokens && output === usage.outputTokens && steps === usage.steps));
    if (isSame) return;
    this.#keep({
      code: "reference_differs",
      message: `Entry ${seq} ends the task ${task} with costs other than those of its calls: it is based on data that somebody had changed.`,
      seq,
    });
  }

  /**
   * Finds rows of tasks that no entry has dispatched. Rows that the server has closed for this reason contain nothing
   * else.
   */
  #findUnproven(): void {
    for (const row of this.#database.rows<StoredTask>(TASK, [this.#workspaceId])) {
      const { id, dispatchSeq: seq, status, errorCode, finishSeq, credits, inputTokens, outputTokens } = row;
      const stored = this.#database.get<{ bytes: string }>(ENTRY, [this.#workspaceId, seq]);
      const { task, action, phase } = parsedEntry(stored?.bytes ?? "");
      if (task === id && action === "task.dispatch" && phase === "intent") continue;
      const isClosed = status === "failed" && errorCode === "internal" && finishSeq === null;
      if (isClosed && seq === 0 && credits + inputTokens + outputTokens + row.steps === 0) continue;
      const message = `The row of task ${id} was not written by the server: no entry has dispatched it.`;
      this.#keep({ code: "row_changed", message, seq });
    }
  }

  #keep(difference: Difference): void {
    if (this.#differences.length < KEPT) this.#differences.push(difference);
  }
}

/** Rows that agree with a task's calls. */
function rowsLike({ calls }: ProvenTask): CallRow[] {
  return calls.map(({ seq, id, tool, ...call }) => ({
    ...{ status: call.status, outcomeSeq: call.outcomeSeq, price: call.price },
    ...{ intentSeq: seq, id: id ?? "", tool: tool ?? "" },
  }));
}
