import type { Agent } from "../../access/agents.ts";
import type { Message } from "../../agents/index.ts";
import { messagesOf } from "../input/conversation.ts";
import { type DocumentText, readDocuments } from "../input/documents.ts";
import { historyOf } from "../input/history.ts";
import { documentsOf, type TaskInput } from "../input/task-input.ts";
import type { TaskParts } from "../parts.ts";
import type { Task } from "../task.ts";
import { CallEvidence } from "./call-evidence.ts";

/** The maximum number of bytes of a task's input, including the conversation that it continues, as JSON. */
const MOST_BYTES = 12 * 1024 * 1024;

/**
 * The messages for a task's models: the conversation that it continues, and its own messages. Documents are read
 * inside the agent's current boundary, and each read is recorded.
 * @throws DocumentUnavailable, LedgerChanged
 */
export async function askedMessages(
  parts: TaskParts,
  task: Task,
  input: TaskInput,
  { memoryScope }: Agent,
): Promise<readonly Message[]> {
  const { vault } = parts;
  const { workspaceId, continues } = task;
  const named = documentsOf(input.messages);
  const texts: ReadonlyMap<string, DocumentText> = await readDocuments(
    vault,
    workspaceId,
    memoryScope,
    named,
  );
  const own = messagesOf(input, texts);
  const hasTools = task.tools.length > 0;
  const room = MOST_BYTES - (continues === null ? 0 : Buffer.byteLength(JSON.stringify(own)));
  const history = await historyOf(parts, task, { memoryScope, hasTools, room });
  await recordReads(parts, task, new Set([...history.documents, ...texts.keys()]));
  return [...history.messages, ...own];
}

async function recordReads(parts: TaskParts, task: Task, documents: ReadonlySet<string>): Promise<void> {
  if (documents.size === 0) return;
  const { db, ledger } = parts;
  const evidence = new CallEvidence(parts, task);
  await db.tx(task.workspaceId, async (tx) => {
    for (const document of documents) {
      const fields = { phase: "single", action: "vault.read", outcome: "succeeded" } as const;
      await ledger.append(tx, task.workspaceId, evidence.draft({ ...fields, detail: { document } }));
    }
  });
}
