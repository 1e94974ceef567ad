import { endOfSlice } from "../../ledger/erase.ts";
import type { ErasedPayload } from "../../ledger/proof/erasure.ts";
import { type LedgerLists, requireSigned } from "../../ledger/reading/lists.ts";
import { entryField } from "../../ledger/reading/query.ts";
import type { Db } from "../../store/db.ts";

/** Entries that may quote a document. */
export interface Extent {
  /** Calls that began before this entry. */
  readonly before: number;
  /** Of these tasks, entries up to the given one instead. */
  readonly tasks: ReadonlyMap<string, number>;
  /** Of these tasks, everything but the prompt: they go on with the conversation of a task that quotes the document. */
  readonly whole: ReadonlySet<string>;
}

/** What is to be erased of one task, or of calls without a task. */
export interface QuotedTexts {
  /**
   * The first output that contains the document. It is erased last, so that a crash leaves something to find. Null if the
   * task's messages name the document, which they continue to do, or if the task is known to quote it.
   */
  readonly first: ErasedPayload | null;
  /** Intent of the call that returned it. */
  readonly intentSeq: number;
  /** Later payloads, and the arguments of calls that wrote the document, which contain its text. */
  readonly others: ErasedPayload[];
}

interface QuotingTaskRow extends ErasedPayload {
  readonly holds: number;
  /** Whether it is the input of a task whose messages name the document. */
  readonly names: number | null;
  readonly task: string | null;
  readonly tool: string | null;
  readonly ref: number | null;
  readonly action: string | null;
  readonly request: string | null;
}

const [TASK, TOOL, REF, ACTION, REQUEST, DOCUMENTS] = [
  entryField("l.bytes", "task"),
  entryField("l.bytes", "tool"),
  entryField("l.bytes", "ref"),
  entryField("l.bytes", "action"),
  entryField("l.bytes", "request_id"),
  entryField("l.bytes", "$.detail.documents"),
];

/**
 * Finds what quotes a document in the entries above `after`, by task; the key "" is for calls without a task.
 * @param isStopped ends the search early
 */
export async function findQuotes(
  { db, lists }: { readonly db: Db; readonly lists: LedgerLists },
  { workspaceId, document }: { readonly workspaceId: number; readonly document: string },
  from: number,
  { before, tasks, whole }: Extent,
  isStopped: () => boolean,
): Promise<ReadonlyMap<string, QuotedTexts>> {
  const found = new Map<string, QuotedTexts>();
  const inputs = new Map<number, ErasedPayload>();
  const prompts = new Set<string>();
  // The outcome of a call that began before the deletion may come after it.
  const last = before > 0 ? Number.MAX_SAFE_INTEGER : Math.max(0, ...tasks.values());
  for (let after = from; !isStopped(); ) {
    const to = await endOfSlice(db, workspaceId, after, last);
    if (to === null) break;
    const rows = await db.all<QuotingTaskRow>(
      `SELECT p.seq, p.kind,
         (p.kind = 'output' OR (${ACTION} IN ('model.call', 'model.count') AND ${TASK} IS NULL))
           AND instr(p.body, $4) > 0 AS holds,
         instr(' ' || ${DOCUMENTS} || ' ', $5) > 0 AS names,
         ${TASK} AS task, ${TOOL} AS tool, ${REF} AS ref, ${ACTION} AS action,
         ${REQUEST} AS request
       FROM payloads AS p JOIN ledger AS l ON l.workspace_id = p.workspace_id AND l.seq = p.seq
       WHERE p.workspace_id = $1 AND p.seq > $2 AND p.seq <= $3 ORDER BY p.seq, p.kind`,
      [workspaceId, after, to, document, ` ${document} `],
    );
    await requireSigned(lists, workspaceId, rows);
    for (const row of rows) {
      const end = row.task === null ? undefined : tasks.get(row.task);
      const isMeant = end === undefined ? (row.ref ?? row.seq) < before : row.seq <= end;
      if (!isMeant) continue;
      const isInput = row.action === "task.dispatch" && row.kind === "input";
      if (isInput ? row.names : row.task !== null && whole.has(row.task)) begin(found, row.task ?? "");
      if (!isInput) collect(found, inputs, { ...row, holds: holdsPrompt(prompts, row) ? 1 : row.holds });
    }
    after = to;
    await new Promise((resolve) => setImmediate(resolve));
  }
  return found;
}

/**
 * Whether this is the answer to a client's prompt that contains the document. Each attempt of a request has entries of its own;
 * only the first has the prompt. `prompts` are the requests with such prompts that have been read.
 */
function holdsPrompt(prompts: Set<string>, { kind, holds, task, action, request }: QuotingTaskRow): boolean {
  if (action !== "model.call" || task !== null || request === null) return false;
  if (kind === "input" && holds) prompts.add(request);
  return kind === "output" && prompts.has(request);
}

function begin(found: Map<string, QuotedTexts>, task: string): void {
  if (!found.has(task)) found.set(task, { first: null, intentSeq: 0, others: [] });
}

/** Rows MUST be passed in order. `inputs` are the arguments of calls whose results have not been read yet. */
function collect(
  found: Map<string, QuotedTexts>,
  inputs: Map<number, ErasedPayload>,
  row: QuotingTaskRow,
): void {
  const { seq, kind, holds, task, tool, ref } = row;
  const key = { seq, kind };
  const isWrite = tool === "vault.write";
  if (isWrite && kind === "input") inputs.set(seq, key);
  const quotes = found.get(task ?? "");
  if (quotes && (task !== null || holds)) quotes.others.push(key);
  const input = isWrite && holds ? inputs.get(ref ?? seq) : undefined;
  if (quotes) {
    if (input && !quotes.others.some((other) => other.seq === input.seq && other.kind === "input")) {
      quotes.others.push(input);
    }
  } else if (holds) {
    found.set(task ?? "", { first: key, intentSeq: ref ?? seq, others: input ? [input] : [] });
  }
  if (kind === "output") inputs.delete(ref ?? seq);
}
