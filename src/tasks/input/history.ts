import type { Boundary } from "../../access/memory-scope.ts";
import type { JsonValue, Message, ToolCall, ToolResult } from "../../agents/index.ts";
import { LedgerChanged } from "../../ledger/ledger-changed.ts";
import { type ParsedEntry, parsedEntry } from "../../ledger/reading/parsed-entry.ts";
import type { TaskParts } from "../parts.ts";
import { isText } from "../recovery/check-stored.ts";
import { requireProvenEnd, requireSealed } from "../recovery/proven-row.ts";
import { findTask, lastSeq } from "../rows/tasks.ts";
import { outputsOf, UNKNOWN } from "../run/progress.ts";
import { isFinal, type Task, type TaskFacts, type ToolCallRecord } from "../task.ts";
import { messagesOf } from "./conversation.ts";
import { type DocumentText, readAvailable } from "./documents.ts";
import { documentsOf } from "./task-input.ts";

type HistoryParts = Pick<TaskParts, "db" | "lists" | "vault">;

export interface HistoryOptions {
  /** The documents that the task's agent may currently see. */
  readonly memoryScope: Boundary;
  /** Whether the task has tools. Without any, some providers refuse a conversation that contains calls. */
  readonly hasTools: boolean;
  /** The maximum number of bytes of the messages as JSON. */
  readonly room: number;
}

/** The conversation of the tasks that a task continues, and the vault documents that it contains. */
export interface TaskHistory {
  readonly messages: readonly Message[];
  readonly documents: Iterable<string>;
}

/** The maximum number of earlier tasks to follow. */
const MOST_LINKS = 100;
const LEFT_OUT =
  "[An earlier part of this conversation was erased, or the conversation became too long. That part is left out.]";

/**
 * Rebuilds the conversation from the texts of the earlier tasks, so their erasure and expiry apply. A task with a
 * missing text is left out, and a sentence says so. The rows and texts are compared with the ledger before a model
 * reads them.
 * @throws LedgerChanged if they differ
 */
export async function historyOf(
  parts: HistoryParts,
  { workspaceId, agentId, continues }: Task,
  options: HistoryOptions,
): Promise<TaskHistory> {
  /** Newest first. Null if left out. */
  const links: (readonly Message[] | null)[] = [];
  const documents = new Set<string>();
  let { room } = options;
  for (let id = continues; id !== null; ) {
    const task = await findTask(parts.db, workspaceId, id);
    const link = task && (await linkOf(parts, task, agentId, options));
    room -= link ? Buffer.byteLength(JSON.stringify(link.messages)) : 0;
    if (room < 0 || links.length === MOST_LINKS) {
      links.push(null);
      break;
    }
    links.push(link?.messages ?? null);
    for (const document of link?.documents ?? []) documents.add(document);
    id = task?.continues ?? null;
  }
  links.reverse();
  const messages = links.flatMap((link, at): readonly Message[] => {
    if (link !== null) return link;
    return at > 0 && links[at - 1] === null ? [] : [{ role: "user", text: LEFT_OUT }];
  });
  return { messages, documents };
}

/**
 * Whether a task, or a task whose conversation it continues, names a document. Each run reads the document's text
 * again.
 */
export async function namesDocument(db: HistoryParts["db"], last: TaskFacts): Promise<boolean> {
  let id: string | null = last.id;
  for (let links = 0; id !== null && links < MOST_LINKS; links++) {
    const task: Task | undefined = await findTask(db, last.workspaceId, id);
    if (documentsOf(task?.input?.messages ?? null).length > 0) return true;
    id = task?.continues ?? null;
  }
  return false;
}

/** The conversation of one task. Null if any of its texts was erased. */
async function linkOf(
  parts: HistoryParts,
  task: Task,
  agentId: number,
  { memoryScope, hasTools }: HistoryOptions,
): Promise<TaskHistory | null> {
  const { vault } = parts;
  await requireSealed(parts, task);
  await requireProvenEnd(parts, task);
  if (task.agentId !== agentId || !isFinal(task.status)) {
    throw new LedgerChanged(`the stored task ${task.id} cannot have been continued`, task.dispatchSeq);
  }
  const calls = await provenCalls(parts, task);
  const { input, output, status } = task;
  if (input === null || calls === null || (status === "succeeded" && output === null)) return null;
  const named = documentsOf(input.messages);
  const texts: ReadonlyMap<string, DocumentText> = await readAvailable(
    vault,
    task.workspaceId,
    memoryScope,
    named,
  );
  await requireTexts(parts, task);
  const ending = output ?? `[The task ended without an answer: ${status}.]`;
  const messages: Message[] = [
    ...messagesOf(input, texts),
    ...calls.flatMap((call) => (hasTools ? asCall(call) : asText(call))),
    { role: "assistant", text: ending, toolCalls: [] },
  ];
  return { messages, documents: texts.keys() };
}

/** @throws LedgerChanged if the input or the output does not match the hash in the ledger */
async function requireTexts({ db, lists }: HistoryParts, task: Task): Promise<void> {
  const { workspaceId, id, dispatchSeq } = task;
  const endSeq = await lastSeq(db, task);
  const entries = await lists.entries(workspaceId, [dispatchSeq, endSeq]);
  const { input_hash: asked } = parsedEntry(entries.get(dispatchSeq)?.bytes ?? "");
  const { output_hash: answered } = parsedEntry(entries.get(endSeq)?.bytes ?? "");
  const isIntact =
    (await isText(db, workspaceId, { seq: dispatchSeq, kind: "input" }, asked)) &&
    (await isText(db, workspaceId, { seq: endSeq, kind: "output" }, answered));
  if (!isIntact) throw new LedgerChanged(`the stored texts of ${id} do not match the ledger`, endSeq);
}

interface MadeCall {
  readonly call: ToolCall;
  readonly result: ToolResult;
}

/**
 * The tool calls of a task with their results. Null if any of their texts was erased.
 * @throws LedgerChanged
 */
async function provenCalls({ db, lists }: HistoryParts, task: Task): Promise<readonly MadeCall[] | null> {
  if (task.toolsCalled.length === 0) return [];
  const outputs = await outputsOf(db, task);
  const seqs = task.toolsCalled.flatMap(({ intentSeq, outcomeSeq }) => [intentSeq, outcomeSeq ?? intentSeq]);
  const entries = await lists.entries(task.workspaceId, seqs);
  const calls: MadeCall[] = [];
  for (const record of task.toolsCalled) {
    const { id, tool, arguments: input, status, intentSeq, outcomeSeq } = record;
    const intent = parsedEntry(entries.get(intentSeq)?.bytes ?? "");
    const outcome = parsedEntry(entries.get(outcomeSeq ?? intentSeq)?.bytes ?? "");
    if (!(await isOwnCall(db, task, record, intent, outcome))) {
      throw new LedgerChanged(`the stored call ${id} of ${task.id} does not match the ledger`, intentSeq);
    }
    const output = outcomeSeq === null ? undefined : outputs.get(outcomeSeq);
    const isErased = input === null || (output === undefined && outcome.output_hash !== undefined);
    if (isErased) return null;
    const result = { id, tool, status, output: output ?? UNKNOWN };
    calls.push({ call: { id, tool, arguments: input as JsonValue }, result });
  }
  return calls;
}

/** Whether a call's row and texts match its entries. */
async function isOwnCall(
  db: HistoryParts["db"],
  { workspaceId, id }: Task,
  { intentSeq, outcomeSeq }: ToolCallRecord,
  intent: ParsedEntry,
  outcome: ParsedEntry,
): Promise<boolean> {
  if ([intent, outcome].some(({ action, task }) => action !== "tool.call" || task !== id)) return false;
  if (!(await isText(db, workspaceId, { seq: intentSeq, kind: "input" }, intent.input_hash))) return false;
  if (outcomeSeq === null) return true;
  if (outcomeSeq !== intentSeq && outcome.ref !== intentSeq) return false;
  return isText(db, workspaceId, { seq: outcomeSeq, kind: "output" }, outcome.output_hash);
}

function asCall({ call, result }: MadeCall): readonly Message[] {
  return [
    { role: "assistant", text: "", toolCalls: [call] },
    { role: "tool", results: [result] },
  ];
}

function asText({ call, result }: MadeCall): readonly Message[] {
  const [given, got] = [JSON.stringify(call.arguments), JSON.stringify(result.output)];
  return [
    {
      role: "user",
      text: `[The tool ${call.tool} was called with ${given}. Its result (${result.status}): ${got}]`,
    },
  ];
}
