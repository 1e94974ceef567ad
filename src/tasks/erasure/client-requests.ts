import { Problem } from "../../base/errors.ts";
import type { RunningCalls } from "../../gate/direct/running-calls.ts";
import type { LedgerHistories } from "../../gate/ledger-histories.ts";
import type { ErasedPayload } from "../../ledger/proof/erasure.ts";
import type { SeqRange } from "../../ledger/reading/block-index.ts";
import type { LedgerLists } from "../../ledger/reading/lists.ts";
import { type ParsedEntry, parsedEntry } from "../../ledger/reading/parsed-entry.ts";
import type { EntryFilter, StoredEntry } from "../../ledger/reading/query.ts";

/* Which entries belong to a client's request to a model. The signed entries decide: an agent may delete the row of its
   response, and most attempts have no row. All entries of a request have its `request_id`, and those of a background
   response its id. */

/** An entry of a client's request to a model. */
export interface RequestEntry extends ParsedEntry {
  readonly seq: number;
}

export interface AnswerParts {
  readonly lists: Pick<LedgerLists, "entries" | "read">;
  readonly histories: Pick<LedgerHistories, "of">;
  readonly running: Pick<RunningCalls, "requests">;
}

/** The id of the background response that an entry belongs to. */
export function backgroundIdOf({ action, task, detail }: ParsedEntry): string | undefined {
  const isClients = action === "model.call" || action === "response.dispatch";
  const id = isClients && task === undefined ? detail?.response : undefined;
  return typeof id === "string" ? id : undefined;
}

/** The ids of the background responses that some entries belong to. */
export async function backgroundIdsOf(
  lists: Pick<LedgerLists, "entries">,
  workspaceId: number,
  seqs: Iterable<number>,
): Promise<ReadonlySet<string>> {
  const ids = new Set<string>();
  for (const { bytes } of (await lists.entries(workspaceId, seqs)).values()) {
    const id = backgroundIdOf(parsedEntry(bytes));
    if (id !== undefined) ids.add(id);
  }
  return ids;
}

/**
 * The seq of the request that an attempt or an answer belongs to. Only later attempts are searched for, backwards, since
 * the ledger may be long.
 */
export async function requestSeqOf(
  lists: Pick<LedgerLists, "entries" | "read">,
  workspaceId: number,
  seq: number,
): Promise<number> {
  const entry = parsedEntry((await lists.entries(workspaceId, [seq])).get(seq)?.bytes ?? "");
  const { action, agent, ref = seq, request_id: id, detail } = entry;
  const isBackground = action === "model.call" && backgroundIdOf(entry) !== undefined;
  if (id === undefined || !(isBackground || Number(detail?.attempt) > 1)) return ref;
  const filter = { action: isBackground ? "response.dispatch" : action, agent };
  const span = { first: 1, last: ref - 1, order: "desc" } as const;
  for await (const { seq: earlier, bytes } of entriesIn(lists, workspaceId, filter, span)) {
    const { request_id: other, input_hash: input } = parsedEntry(bytes);
    if (other === id && input !== undefined) return earlier;
  }
  return ref;
}

/**
 * The texts of all attempts at a request that has ended.
 * @throws Problem 409 `task_unfinished` if a text of the request may still be recorded
 */
export async function answersTo(
  { lists, histories, running }: AnswerParts,
  workspaceId: number,
  request: RequestEntry,
): Promise<readonly ErasedPayload[]> {
  const { seq: requestSeq, action, agent, request_id: id } = request;
  if (id === undefined) return [];
  const history = histories.of(workspaceId);
  if (history.openResponses.has(requestSeq)) throw unfinished("has not ended. Cancel it first");
  // Both are read before the entries: whatever ends in the meantime may have been recorded too late to be found.
  const openCalls = new Set(history.openCalls);
  const mayContinue = running.requests(workspaceId).has(id);
  const attempts = new RequestAttempts(request);
  const payloads: ErasedPayload[] = [];
  const span = { first: requestSeq + 1, last: Number.MAX_SAFE_INTEGER, order: "asc" } as const;
  const actions = action === "response.dispatch" ? [action, "model.call"] : ["model.call"];
  for (const each of actions) {
    for await (const { seq, bytes } of entriesIn(lists, workspaceId, { action: each, agent }, span)) {
      if (attempts.areOver(each, seq)) break;
      const entry = parsedEntry(bytes);
      if (entry.request_id !== id) continue;
      attempts.take({ ...entry, seq });
      if (entry.output_hash !== undefined) payloads.push({ seq, kind: "output" });
    }
  }
  const isRecording = [...attempts.open].some((intent) => openCalls.has(intent));
  if (isRecording || (mayContinue && !attempts.areOver("model.call", Number.MAX_SAFE_INTEGER))) {
    throw unfinished("has an answer that is not recorded yet. Try again later");
  }
  return payloads;
}

async function* entriesIn(
  lists: Pick<LedgerLists, "read">,
  workspaceId: number,
  filter: Pick<EntryFilter, "action" | "agent">,
  span: SeqRange,
): AsyncGenerator<StoredEntry, void> {
  for await (const entries of lists.read(workspaceId, filter, span)) yield* entries;
}

function unfinished(state: string): Problem {
  return new Problem("task_unfinished", `The response ${state}.`);
}

/** The attempts at one request, read in order. A late outcome may follow the end of a background response. */
class RequestAttempts {
  /** Intents without an outcome. */
  readonly open = new Set<number>();
  readonly #requestSeq: number;
  /** The entry that ended the background response. */
  #end: number | null = null;
  /** Whether the last outcome ended the request: an attempt that fails without a text may be followed by another. */
  #isFinal = false;

  constructor({ seq, action }: RequestEntry) {
    this.#requestSeq = seq;
    if (action === "model.call") this.open.add(seq);
  }

  take({ seq, action, phase, ref = 0, outcome, output_hash: output }: RequestEntry): void {
    if (action === "response.dispatch") {
      if (ref === this.#requestSeq) this.#end = seq;
    } else if (phase === "intent") {
      this.open.add(seq);
    } else {
      this.open.delete(ref);
      this.#isFinal = outcome !== "failed" || output !== undefined;
    }
  }

  /** Whether no further entries with this action, from `seq` on, belong to the request. */
  areOver(action: string, seq: number): boolean {
    if (action === "response.dispatch") return this.#end !== null;
    return this.open.size === 0 && (this.#end === null ? this.#isFinal : seq > this.#end);
  }
}
