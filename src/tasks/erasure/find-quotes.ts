import { takeWholeTurn } from "../../base/inflow.ts";
import { endOfSlice } from "../../ledger/erase.ts";
import type { ErasedPayload } from "../../ledger/proof/erasure.ts";
import { type LedgerLists, requireSigned } from "../../ledger/reading/lists.ts";
import { parsedEntry } from "../../ledger/reading/parsed-entry.ts";
import { containsSql } from "../../store/common-sql.ts";
import type { Db } from "../../store/db.ts";
import { requestSeqOf } from "./client-requests.ts";
import { type ErasedQuotes, erasedQuotes } from "./recorded-quotes.ts";
import { provenText, QuotingResponses, referencesIn, responseIdsIn } from "./response-links.ts";

/** Entries that may quote a document. */
export interface Extent {
  /** Calls that began before this entry. */
  readonly before: number;
  /** For these tasks, entries up to the given one instead. */
  readonly tasks: ReadonlyMap<string, number>;
  /**
   * For these tasks, everything except the prompt: they continue the conversation of a task that quotes the document.
   */
  readonly whole: ReadonlySet<string>;
}

/** The texts to erase from one task, or from calls without a task. */
export interface QuotedTexts {
  /**
   * The first output that contains the document. It is erased last, so that a crash leaves something to find. Null if an
   * entry shows that the task was sent the document, or if the task is known to quote it.
   */
  readonly first: ErasedPayload | null;
  /** Intent of the call that returned it. */
  readonly intentSeq: number;
  /** Later payloads, and the arguments of calls that wrote the document, which contain its text. */
  readonly others: ErasedPayload[];
}

/** A stored text with the fields of its entry. */
interface QuotingText extends ErasedPayload {
  readonly holds: boolean;
  readonly task: string | null;
  readonly call: string | null;
  readonly tool: string | null;
  readonly ref: number | null;
  readonly action: string | null;
  readonly request: string | null;
  readonly dialect: string | null;
  /** The background response that the entry belongs to. */
  readonly response: string | null;
  readonly hash: string | null;
}

const NOTHING_ERASED: ErasedQuotes = { tasks: new Set(), responses: [], links: [] };

/** The document whose quotes are searched for. */
export interface QuotedDocument {
  readonly workspaceId: number;
  readonly document: string;
  /** Requests that are known to quote it, although their prompts are erased. */
  readonly requests?: readonly string[] | undefined;
}

/**
 * Finds the quotes of a document in the entries above `from`, in passes. Each pass continues where the previous one
 * ended.
 */
export class QuoteSearch {
  readonly #parts: { readonly db: Db; readonly lists: LedgerLists };
  readonly #subject: QuotedDocument;
  readonly #extent: Extent;
  readonly #conversations: QuotedConversations;
  readonly #inputs = new Map<number, WriteInput>();
  #readers: ReadonlySet<string> | null = null;
  #after: number;

  constructor(
    parts: { readonly db: Db; readonly lists: LedgerLists },
    subject: QuotedDocument,
    from: number,
    extent: Extent,
  ) {
    this.#parts = parts;
    this.#subject = subject;
    this.#extent = extent;
    this.#after = from;
    this.#conversations = new QuotedConversations(parts.db, subject);
  }

  /** The clients' requests found to quote the document so far. May grow with each pass. */
  get requests(): ReadonlySet<string> {
    return this.#conversations.requests;
  }

  /**
   * Reads the entries written since the last pass.
   * @param isStopped ends the pass early
   * @returns the texts to erase, by task; the key "" is for calls without a task
   */
  async next(isStopped: () => boolean): Promise<ReadonlyMap<string, QuotedTexts>> {
    const { db } = this.#parts;
    const { workspaceId } = this.#subject;
    const { before, tasks } = this.#extent;
    const found = new Map<string, QuotedTexts>();
    const earlier = this.#readers ? [] : await this.#begin();
    // The outcome of a call that began before the deletion may come after it.
    const last = before > 0 ? Number.MAX_SAFE_INTEGER : Math.max(0, ...tasks.values());
    while (!isStopped()) {
      const to = await endOfSlice(db, workspaceId, this.#after, last);
      if (to === null) break;
      for (const row of await this.#rows(to)) await this.#take(found, row);
      this.#after = to;
      const turn = takeWholeTurn(workspaceId);
      if (turn) await turn;
    }
    // Tasks that continue these tasks are found even if all texts of these are gone.
    for (const task of earlier) begin(found, task);
    return found;
  }

  /** @returns the tasks that quoted the document, but whose texts were erased earlier */
  async #begin(): Promise<Iterable<string>> {
    const { lists } = this.#parts;
    const { workspaceId, document } = this.#subject;
    const { before } = this.#extent;
    const earlier =
      before > 0 ? await erasedQuotes(lists, { workspaceId, document, before }) : NOTHING_ERASED;
    const readers = await readersOf(lists, this.#subject, this.#after, this.#extent);
    for (const task of earlier.tasks) readers.add(task);
    this.#conversations.begin(earlier);
    this.#readers = readers;
    return earlier.tasks;
  }

  async #rows(to: number): Promise<readonly QuotingText[]> {
    const { db, lists } = this.#parts;
    const { workspaceId, document } = this.#subject;
    const rows = await db.all<TextRow>(
      `SELECT p.seq, p.kind, l.bytes, CASE WHEN ${containsSql("p.body", "$4")} THEN 1 ELSE 0 END AS holds
       FROM payloads AS p JOIN ledger AS l ON l.workspace_id = p.workspace_id AND l.seq = p.seq
       WHERE p.workspace_id = $1 AND p.seq > $2 AND p.seq <= $3 ORDER BY p.seq, p.kind`,
      [workspaceId, this.#after, to, document],
    );
    await requireSigned(lists, workspaceId, rows);
    return rows.map(quotingText);
  }

  async #take(found: Map<string, QuotedTexts>, row: QuotingText): Promise<void> {
    const { before, tasks, whole } = this.#extent;
    const end = row.task === null ? undefined : tasks.get(row.task);
    const isMeant = end === undefined ? await this.#hasBegun(row) : row.seq <= end;
    const isFollowed = before > 0 && (await this.#conversations.follows(row, isMeant));
    if (!isMeant && !isFollowed) return;
    // A task's input only names the document.
    const isAsked = row.action === "task.dispatch" && row.kind === "input";
    if (row.task !== null && !isAsked && (whole.has(row.task) || this.#readers?.has(row.task))) {
      begin(found, row.task);
    }
    collect(found, this.#inputs, { ...row, holds: isFollowed || row.holds });
  }

  /** Whether the call of a text began before the deletion. The request decides, although it may be tried again later. */
  async #hasBegun({ seq, ref, holds, task, action, kind }: QuotingText): Promise<boolean> {
    const { before } = this.#extent;
    if ((ref ?? seq) < before) return true;
    const isAnswer = kind === "output" && action === "model.call" && task === null;
    if (before === 0 || !holds || !isAnswer) return false;
    return (await requestSeqOf(this.#parts.lists, this.#subject.workspaceId, seq)) < before;
  }
}

/** Clients' calls with a prompt that contains the document, or continues a response that quotes it. */
class QuotedConversations {
  readonly #db: Db;
  readonly #workspaceId: number;
  /** The quoting requests, by id: each attempt has its own entries, and only the first has the prompt. */
  readonly #requests: Set<string>;
  #responses = new QuotingResponses([]);

  constructor(db: Db, { workspaceId, requests }: QuotedDocument) {
    this.#db = db;
    this.#workspaceId = workspaceId;
    this.#requests = new Set(requests);
  }

  get requests(): ReadonlySet<string> {
    return this.#requests;
  }

  /** Adds the texts that were erased earlier. MUST be called before any rows are passed. */
  begin({ responses, links }: ErasedQuotes): void {
    this.#responses = new QuotingResponses(links);
    this.#responses.add(responses);
  }

  /**
   * Whether a text must be erased because of the prompt of its request. Rows MUST be passed in order.
   * @param isMeant whether the call began before the deletion. Calls that continue a quoting conversation may be
   *   later
   */
  async follows(row: QuotingText, isMeant: boolean): Promise<boolean> {
    const { holds, kind, task, action, request, dialect, response } = row;
    const isClients = action === "model.call" || action === "response.dispatch";
    if (!isClients || task !== null || request === null) return false;
    if (kind === "input") {
      if (holds && isMeant) this.#requests.add(request);
      return dialect === "responses" && this.#continues(row, request);
    }
    const isAnswer = this.#requests.has(request);
    if (dialect === "responses" && (isAnswer || (holds && isMeant))) {
      this.#responses.add(responseIdsIn((await this.#text(row)) ?? ""));
      // A background response has a different id from its provider's answer.
      if (response !== null) this.#responses.add([response]);
    }
    return isAnswer;
  }

  /** Notes a request that continues a quoted response. @returns whether it repeats text from one */
  async #continues(row: QuotingText, request: string): Promise<boolean> {
    if (this.#responses.isEmpty) return false;
    const { ids, repeated } = referencesIn((await this.#text(row)) ?? "");
    const isQuoting = (id: string) => this.#responses.has(id);
    if ([...ids].some(isQuoting)) this.#requests.add(request);
    return [...repeated].some(isQuoting);
  }

  #text({ seq, kind, hash }: QuotingText): Promise<string | undefined> {
    return provenText(this.#db, { workspaceId: this.#workspaceId, seq, kind }, hash ?? undefined);
  }
}

/**
 * The tasks whose models were sent the document as a part of a message, either their own or from a task that they
 * continue.
 */
async function readersOf(
  lists: LedgerLists,
  { workspaceId, document }: QuotedDocument,
  from: number,
  { before, tasks }: Omit<Extent, "whole">,
): Promise<Set<string>> {
  const readers = new Set<string>();
  const last = Math.max(before - 1, ...tasks.values());
  if (last <= from) return readers;
  const span = { first: from + 1, last, order: "asc" } as const;
  for await (const entries of lists.read(workspaceId, { action: "vault.read" }, span)) {
    for (const { seq, bytes } of entries) {
      if (!bytes.includes(document)) continue;
      const { task, detail } = parsedEntry(bytes);
      if (task === undefined || detail?.document !== document) continue;
      if (seq <= (tasks.get(task) ?? before - 1)) readers.add(task);
    }
  }
  return readers;
}

interface TextRow extends ErasedPayload {
  readonly bytes: string;
  readonly holds: number;
}

const CLIENTS_CALLS: ReadonlySet<string | undefined> = new Set([
  "model.call",
  "model.count",
  "response.dispatch",
]);

function quotingText({ seq, kind, bytes, holds }: TextRow): QuotingText {
  const { task, tool, ref, action, request_id, input_hash, output_hash, detail } = parsedEntry(bytes);
  // The input of any other call only names the document.
  const isSearched = kind === "output" || (CLIENTS_CALLS.has(action) && task === undefined);
  const textAt = (name: string) => (typeof detail?.[name] === "string" ? detail[name] : null);
  return {
    ...{
      seq,
      kind,
      holds: isSearched && holds === 1,
      task: task ?? null,
      tool: tool ?? null,
      ref: ref ?? null,
    },
    ...{ action: action ?? null, request: request_id ?? null },
    ...{ call: textAt("call"), dialect: textAt("dialect"), response: textAt("response") },
    hash: (kind === "input" ? input_hash : output_hash) ?? null,
  };
}

function begin(found: Map<string, QuotedTexts>, task: string): void {
  if (!found.has(task)) found.set(task, { first: null, intentSeq: 0, others: [] });
}

/** Arguments of `vault.write` as requested, presented or sent. */
interface WriteInput extends ErasedPayload {
  readonly task: string | null;
  /** Null in the dispatch of a task that is a client's own call. */
  readonly call: string | null;
}

/** Rows MUST be passed in order. `inputs` are the arguments of calls whose results have not been read yet. */
function collect(found: Map<string, QuotedTexts>, inputs: Map<number, WriteInput>, row: QuotingText): void {
  const { seq, kind, holds, task, call, tool, ref } = row;
  const key = { seq, kind };
  const isWrite = tool === "vault.write";
  if (isWrite && kind === "input") inputs.set(seq, { ...key, task, call });
  const quotes = found.get(task ?? "");
  if (quotes && (task !== null || holds)) quotes.others.push(key);
  const written = isWrite && holds ? inputsOf(inputs, inputs.get(ref ?? seq)) : [];
  if (quotes) {
    for (const input of written) {
      const isThere = quotes.others.some((other) => other.seq === input.seq && other.kind === "input");
      if (!isThere) quotes.others.push(input);
    }
  } else if (holds) {
    found.set(task ?? "", { first: key, intentSeq: ref ?? seq, others: [...written] });
  }
  if (kind === "output") inputs.delete(ref ?? seq);
}

/** The arguments that were sent, and the same arguments as requested and presented to people before. */
function inputsOf(
  inputs: ReadonlyMap<number, WriteInput>,
  sent: WriteInput | undefined,
): readonly ErasedPayload[] {
  if (!sent) return [];
  const { task, call } = sent;
  const same = [...inputs.values()].filter(
    (each) => each === sent || (task !== null && each.task === task && (each.call ?? call) === call),
  );
  return same.map(({ seq, kind }) => ({ seq, kind }));
}
