import type { AssistantMessage, JsonValue, Message, ToolCall, ToolResult } from "../../agents/index.ts";
import type { ProvenTask } from "../../ledger/reading/proven-task.ts";
import type { Sql, Tx } from "../../store/db.ts";
import { SealBroken } from "../../store/seals/seals.ts";
import type { ApprovalEvidence } from "../approvals/evidence.ts";
import type { ProvenApproval } from "../approvals/proven.ts";
import { approvalsOf } from "../approvals/rows.ts";
import type { Task, ToolCallRecord } from "../task.ts";

/** Where to resume an interrupted task. */
export interface SavedProgress {
  /**
   * The conversation after the prompt, which the framework continues. With an output schema, it may end with an
   * answer.
   */
  readonly messages: readonly Message[];
  /**
   * Whether the last step has calls that are still to be made, so that no model is asked first and no text is
   * repeated.
   */
  readonly isInStep: boolean;
  /** Approvals, by call id. */
  readonly asked: ReadonlyMap<string, ProvenApproval>;
  /** Set if the task is a single call that its client made itself. Null if a model drives the task. */
  readonly own: DirectTaskCall | null;
  /** The final answer, if the process died before the task's end was written. */
  readonly answer: string | null;
}

/** The progress of a task that has not begun. */
export const NO_PROGRESS: SavedProgress = {
  messages: [],
  isInStep: false,
  asked: new Map(),
  own: null,
  answer: null,
};

/** A call that is its own task, with its result if it was made before. */
export interface DirectTaskCall {
  readonly call: ToolCall;
  readonly result: ToolResult | null;
}

/** The step of such a call, in place of a model's answer: models count steps from 1. */
const OWN_STEP = 0;

/** The text that a model receives for a call that was in flight when the process died. */
export const UNKNOWN =
  "It is unknown whether this call took effect, because the server stopped before the result arrived. It was not repeated.";

/** Saves a model's answer in the transaction of its evidence, so that the model is not asked again after a crash. */
export function saveAnswer(tx: Tx, { workspaceId, id }: Task, step: number, message: AssistantMessage): void {
  insertAnswer(tx, workspaceId, id, step, message);
  // The task has made progress, so earlier crashes during the same step no longer count.
  tx.write("UPDATE tasks SET attempts = 1 WHERE workspace_id = $1 AND id = $2 AND attempts > 1", [
    workspaceId,
    id,
  ]);
}

/** Saves the call of a new task in the transaction that creates the task. */
export function saveOwnCall(
  tx: Tx,
  { workspaceId, id }: Pick<Task, "workspaceId" | "id">,
  call: ToolCall,
): void {
  const message: AssistantMessage = { role: "assistant", text: "", toolCalls: [call] };
  insertAnswer(tx, workspaceId, id, OWN_STEP, message);
}

/** Answers are sealed, because a resumed task makes the calls that its last answer requests. */
function insertAnswer(
  tx: Tx,
  workspaceId: number,
  taskId: string,
  step: number,
  message: AssistantMessage,
): void {
  const body = JSON.stringify(message);
  const row = { workspace_id: workspaceId, task_id: taskId, step, body };
  tx.write("INSERT INTO task_answers (workspace_id, task_id, step, body, seal) VALUES ($1, $2, $3, $4, $5)", [
    workspaceId,
    taskId,
    step,
    body,
    tx.seals.of("task_answers", row),
  ]);
}

/** Deletes the answers of a task that has ended, which cannot be resumed. */
export function forgetAnswers(tx: Tx, workspaceId: number, taskId: string): void {
  tx.write("DELETE FROM task_answers WHERE workspace_id = $1 AND task_id = $2", [workspaceId, taskId]);
}

/**
 * Loads a task's progress. A call that was in flight when a process died has the result `unknown`, unless its tool
 * may be called twice without harm: then it has no result and is made again.
 * @throws LedgerChanged if a stored decision contradicts the ledger
 */
export async function loadProgress(
  sql: Pick<Sql, "all" | "seals">,
  task: Task,
  mayRepeat: (tool: string) => boolean,
  evidence: Pick<ApprovalEvidence, "prove" | "requireUnused">,
): Promise<SavedProgress> {
  const rows = await savedAnswers(sql, task);
  if (!rows.every((row) => sql.seals.fits("task_answers", row))) {
    throw new SealBroken(`the saved answers of ${task.id} were not written by this server`);
  }
  const answers = rows.map(({ body }) => JSON.parse(body) as AssistantMessage);
  const approvals = await approvalsOf(sql, task.workspaceId, task.id);
  // A task without approvals reads no entries.
  const proven = approvals.length === 0 ? [] : await evidence.prove(approvals);
  for (const approval of proven) {
    if (!task.toolsCalled.some(({ id }) => id === approval.callId)) await evidence.requireUnused(approval);
  }
  const asked = new Map(proven.map((approval) => [approval.callId, approval]));
  const last = answers.at(-1);
  const answer = last && last.toolCalls.length === 0 ? last.text : null;
  const outputs = await outputsOf(sql, task);
  const called = new Map(task.toolsCalled.map((call) => [call.id, call]));
  const messages: Message[] = [];
  let isInStep = false;
  for (const answer of answers) {
    const toolCalls = answer.toolCalls.map((call) => asDecided(call, asked.get(call.id)));
    messages.push({ ...answer, toolCalls });
    const results = toolCalls.flatMap((call) => resultOf(call, called.get(call.id), outputs, mayRepeat));
    if (results.length > 0) messages.push({ role: "tool", results });
    isInStep = results.length < toolCalls.length;
  }
  const [first] = messages;
  const [call] = rows[0]?.step === OWN_STEP && first?.role === "assistant" ? first.toolCalls : [];
  const result = messages[1]?.role === "tool" ? messages[1].results[0] : undefined;
  return { messages, isInStep, asked, own: call ? { call, result: result ?? null } : null, answer };
}

/**
 * Whether this server wrote the saved answers, and whether they include all answers accepted according to the ledger.
 * If one were missing, the model would be asked again and its calls could be made twice.
 */
export async function areAnswersProven(
  sql: Pick<Sql, "all" | "seals">,
  task: Task,
  { answered, dispatch }: Pick<ProvenTask, "answered" | "dispatch">,
): Promise<boolean> {
  const rows = await savedAnswers(sql, task);
  const steps = new Set(answered);
  // A tool call that is its own task names its tool in the dispatch.
  if (dispatch?.tool !== undefined) steps.add(OWN_STEP);
  return (
    rows.length === steps.size &&
    rows.every((row) => steps.has(row.step) && sql.seals.fits("task_answers", row))
  );
}

interface AnswerRow {
  readonly workspace_id: number;
  readonly task_id: string;
  readonly step: number;
  readonly body: string;
  readonly seal: Uint8Array | null;
}

function savedAnswers(sql: Pick<Sql, "all">, { workspaceId, id }: Task): Promise<AnswerRow[]> {
  return sql.all<AnswerRow>(
    `SELECT workspace_id, task_id, step, body, seal FROM task_answers
     WHERE workspace_id = $1 AND task_id = $2 ORDER BY step`,
    [workspaceId, id],
  );
}

/** Substitutes the arguments that a person approved instead. */
function asDecided(call: ToolCall, approval: ProvenApproval | undefined): ToolCall {
  if (approval?.status !== "approved" || approval.arguments === null) return call;
  if (approval.argumentsSeq === approval.firstSeq) return call;
  return { ...call, arguments: JSON.parse(approval.arguments) as JsonValue };
}

/** Whether the task has called tools whose place in the conversation is unknown, because an older version ran it. */
export async function hasLostSteps(sql: Pick<Sql, "get">, task: Task): Promise<boolean> {
  if (!task.toolsCalled.some(({ status }) => status !== "denied")) return false;
  const saved = await sql.get("SELECT 1 FROM task_answers WHERE workspace_id = $1 AND task_id = $2 LIMIT 1", [
    task.workspaceId,
    task.id,
  ]);
  return saved === undefined;
}

function resultOf(
  { id, tool }: ToolCall,
  called: ToolCallRecord | undefined,
  outputs: ReadonlyMap<number, JsonValue>,
  mayRepeat: (tool: string) => boolean,
): ToolResult[] {
  if (!called) return [];
  const { status, outcomeSeq } = called;
  const output = outcomeSeq === null ? undefined : outputs.get(outcomeSeq);
  if (output !== undefined) return [{ id, tool, status, output }];
  return mayRepeat(tool) ? [] : [{ id, tool, status: "unknown", output: UNKNOWN }];
}

/** The results of a task's calls, by the seq of their outcome. */
export async function outputsOf(
  sql: Pick<Sql, "all">,
  { workspaceId, id }: Task,
): Promise<ReadonlyMap<number, JsonValue>> {
  const rows = await sql.all<{ seq: number; body: string }>(
    `SELECT p.seq, p.body FROM tool_calls c
     JOIN payloads p ON p.workspace_id = c.workspace_id AND p.seq = c.outcome_seq AND p.kind = 'output'
     WHERE c.workspace_id = $1 AND c.task_id = $2`,
    [workspaceId, id],
  );
  return new Map(rows.map(({ seq, body }) => [seq, JSON.parse(body) as JsonValue]));
}
