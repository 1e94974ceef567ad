import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { EntryDraft } from "../../ledger/entry.ts";
import { endOfSlice, erasePayloads } from "../../ledger/erase.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { ErasedPayload } from "../../ledger/proof/erasure.ts";
import { type LedgerLists, requireSigned } from "../../ledger/reading/lists.ts";
import { parsedEntry } from "../../ledger/reading/parsed-entry.ts";
import { entryField } from "../../ledger/reading/query.ts";
import type { Db, Tx } from "../../store/db.ts";
import type { Forgetting } from "../../store/forgetting.ts";
import { approvalsOf } from "../approvals/rows.ts";
import type { TaskEventHub } from "../events/hub.ts";
import { findTask, lastSeq } from "../rows/tasks.ts";
import { eraseEvents } from "./erase-events.ts";

const RETRY_MS = 30_000;

/** The erasure of everything that tasks quote of a deleted document. Kept in the store until it is complete. */
interface Erasure {
  readonly workspaceId: number;
  readonly document: string;
  readonly actor: string;
  readonly requestId: string;
  /**
   * The entry of the deletion. Only what was begun before it is erased, so a note that someone restores erases nothing
   * of a later document with the same id. Undefined in notes of earlier versions.
   */
  readonly deletionSeq?: number;
  /**
   * Tasks that had begun by the deletion, including those waiting for a person or to be resumed. They may have read
   * the document, and may quote it until they end.
   */
  readonly running: readonly string[];
}

export interface QuotedParts {
  readonly db: Db;
  readonly ledger: Ledger;
  readonly lists: LedgerLists;
  readonly hub: TaskEventHub;
  readonly forgetting: Forgetting;
  readonly clock: Clock;
  readonly log: Log;
}

/** Entries that may quote a document. */
interface Extent {
  /** Calls that began before this entry. */
  readonly before: number;
  /** Of these tasks, entries up to the given one instead. */
  readonly tasks: ReadonlyMap<string, number>;
}

/** What is to be erased of one task, or of calls without a task. */
interface QuotedTexts {
  /** The first output that contains the document. It is erased last, so that a crash leaves something to find. */
  readonly first: ErasedPayload;
  /** Intent of the call that returned it. */
  readonly intentSeq: number;
  /** Later payloads, and the arguments of calls that wrote the document, which contain its text. */
  readonly others: ErasedPayload[];
}

interface QuotingTaskRow extends ErasedPayload {
  readonly holds: number;
  readonly task: string | null;
  readonly tool: string | null;
  readonly ref: number | null;
}

/**
 * Erases what tasks quote of deleted documents: each tool result that contains a document's id, and everything that
 * the same task wrote or requested after it, in payloads and in stored events. The entries and their hashes remain.
 * The text cannot be removed from the memory of a running task, so its quotes are erased as soon as it ends; until
 * then the ledger records them as pending.
 */
export class QuotedPayloads {
  readonly #parts: QuotedParts;
  readonly #following = new Set<Promise<void>>();
  /** Keys of erasures in progress. */
  readonly #active = new Set<string>();
  #cancelRetry: (() => void) | null = null;
  #stopped = false;

  constructor(parts: QuotedParts) {
    this.#parts = parts;
  }

  /** Resumes erasures that an earlier process did not complete. MUST follow the start of the tasks. */
  start(): void {
    this.#follow(this.#resume());
  }

  /**
   * Resolves when nothing is being erased any more. The next start resumes the rest. MUST follow the end of the
   * tasks.
   */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelRetry?.();
    await Promise.all(this.#following);
  }

  /**
   * Notes an erasure in the transaction that hides the document. Nothing can read the document afterwards.
   * @returns a function that performs the erasure, to be called after the commit. It resolves when only running tasks
   *   still quote the document. It never rejects: failures are retried
   */
  async begin(
    tx: Tx,
    of: Omit<Erasure, "running"> & { readonly deletionSeq: number },
  ): Promise<() => Promise<void>> {
    const rows = await tx.all<{ id: string }>(
      "SELECT id FROM tasks WHERE workspace_id = $1 AND finished_at IS NULL AND started_at IS NOT NULL",
      [of.workspaceId],
    );
    const erasure = { ...of, running: rows.map(({ id }) => id) };
    const note = { key: keyOf(of), value: JSON.stringify(erasure) };
    await tx.run("INSERT INTO meta (key, value, seal) VALUES ($1, $2, $3)", [
      note.key,
      note.value,
      tx.seals.of("meta", note),
    ]);
    return () => this.#erase(erasure);
  }

  #follow(work: Promise<void>): void {
    this.#following.add(work);
    void work.finally(() => this.#following.delete(work));
  }

  async #resume(): Promise<void> {
    try {
      const { db } = this.#parts;
      const rows = await db.all<NoteRow>(
        "SELECT key, value, seal FROM meta WHERE key >= $1 AND key < $2 ORDER BY key",
        [PREFIX, `${PREFIX}~`],
      );
      for (const row of rows) {
        // Only sealed notes are executed: erased texts are lost, and the erasure is recorded as somebody's request.
        if (db.seals.fits("meta", row)) await this.#erase(JSON.parse(row.value) as Erasure);
      }
    } catch (error) {
      this.#later(error);
    }
  }

  #later(error: unknown): void {
    if (this.#stopped) return;
    this.#parts.log.warn("quotes of a deleted document will be erased later", { error });
    this.#cancelRetry ??= this.#parts.clock.after(RETRY_MS, () => {
      this.#cancelRetry = null;
      this.start();
    });
  }

  async #erase(erasure: Erasure): Promise<void> {
    const key = keyOf(erasure);
    if (this.#active.has(key)) return;
    this.#active.add(key);
    const failed = (error: unknown) => this.#later(error);
    const finished = () => this.#active.delete(key);
    let rest = Promise.resolve();
    try {
      const { ended, running } = await this.#begunTasks(erasure);
      const before = erasure.deletionSeq ?? (await this.#findDeletion(erasure));
      // Tasks that still run are erased at their end.
      const tasks = new Map([...ended, ...running.map((id) => [id, 0] as const)]);
      await this.#eraseQuotes(erasure, 0, { before, tasks });
      if (running.length > 0) {
        await this.#recordPending(erasure, running.length);
        rest = this.#afterTheirEnd(erasure, running);
      } else await this.#done(erasure);
    } catch (error) {
      failed(error);
    }
    this.#follow(rest.catch(failed).finally(finished));
  }

  /** The tasks that had begun by the deletion: those that have ended, with their last entry, and those that still run. */
  async #begunTasks({ workspaceId, running: begun }: Erasure): Promise<{
    readonly ended: ReadonlyMap<string, number>;
    readonly running: readonly string[];
  }> {
    const { db } = this.#parts;
    const ended = new Map<string, number>();
    const running: string[] = [];
    for (const id of begun) {
      const task = await findTask(db, workspaceId, id);
      if (!task) continue;
      if (task.finishedAt === null) running.push(id);
      else ended.set(id, await lastSeq(db, task));
    }
    return { ended, running };
  }

  /** The entry of the deletion, for a note that does not name it. 0 if there is none. */
  async #findDeletion({ workspaceId, requestId }: Erasure): Promise<number> {
    const all = { first: 1, last: Number.MAX_SAFE_INTEGER, order: "asc" } as const;
    for await (const entries of this.#parts.lists.read(workspaceId, { action: "vault.delete" }, all)) {
      const found = entries.find(({ bytes }) => parsedEntry(bytes).request_id === requestId);
      if (found) return found.seq;
    }
    return 0;
  }

  async #afterTheirEnd(erasure: Erasure, running: readonly string[]): Promise<void> {
    const { db, hub } = this.#parts;
    for (const id of running) {
      const log = hub.find(id);
      while (log && !log.closed) await new Promise<void>((resolve) => log.onChange(resolve));
      const task = await findTask(db, erasure.workspaceId, id);
      // The process stopped first: left to the next start.
      if (this.#stopped || (task && task.finishedAt === null)) return;
      if (!task) continue;
      const tasks = new Map([[id, await lastSeq(db, task)]]);
      await this.#eraseQuotes(erasure, task.dispatchSeq - 1, { before: 0, tasks });
    }
    await this.#done(erasure);
  }

  /** If the log cannot be emptied now, the next start tries again and finds nothing more to erase. */
  async #done(erasure: Erasure): Promise<void> {
    const { db, log } = this.#parts;
    if (this.#stopped) return;
    if (await db.forget()) await db.run("DELETE FROM meta WHERE key = $1", [keyOf(erasure)]);
    else log.warn("erased texts remain in the database's log until its readers are done");
  }

  /** Erases quotes in those of the entries above `after` that belong to the extent. */
  async #eraseQuotes(erasure: Erasure, after: number, extent: Extent): Promise<void> {
    const found = await this.#find(erasure, after, extent);
    for (const [task, quotes] of found) {
      if (this.#stopped) return;
      if (task !== "") await this.#eraseEvents(erasure.workspaceId, task, quotes);
      await this.#erasePayloads(erasure, task, quotes);
    }
  }

  /** By task; the key "" is for calls without a task. */
  async #find(
    { workspaceId, document }: Erasure,
    from: number,
    { before, tasks }: Extent,
  ): Promise<ReadonlyMap<string, QuotedTexts>> {
    const { db, lists } = this.#parts;
    const found = new Map<string, QuotedTexts>();
    const inputs = new Map<number, ErasedPayload>();
    // The outcome of a call that began before the deletion may come after it.
    const last = before > 0 ? Number.MAX_SAFE_INTEGER : Math.max(0, ...tasks.values());
    for (let after = from; !this.#stopped; ) {
      const to = await endOfSlice(db, workspaceId, after, last);
      if (to === null) break;
      const rows = await db.all<QuotingTaskRow>(
        `SELECT p.seq, p.kind, p.kind = 'output' AND instr(p.body, $4) > 0 AS holds,
           ${TASK} AS task, ${TOOL} AS tool, ${REF} AS ref
         FROM payloads AS p JOIN ledger AS l ON l.workspace_id = p.workspace_id AND l.seq = p.seq
         WHERE p.workspace_id = $1 AND p.seq > $2 AND p.seq <= $3 ORDER BY p.seq, p.kind`,
        [workspaceId, after, to, document],
      );
      await requireSigned(lists, workspaceId, rows);
      for (const row of rows) {
        const end = row.task === null ? undefined : tasks.get(row.task);
        const isMeant = end === undefined ? (row.ref ?? row.seq) < before : row.seq <= end;
        if (isMeant) collect(found, inputs, row);
      }
      after = to;
      await new Promise((resolve) => setImmediate(resolve));
    }
    return found;
  }

  /** Erases the output that identifies the quotes last. */
  async #erasePayloads(erasure: Erasure, task: string, { first, others }: QuotedTexts): Promise<void> {
    const { workspaceId, document } = erasure;
    const draft = { ...draftOf(erasure, "succeeded"), task: task === "" ? undefined : task };
    const cause = { reason: "document_deleted", document } as const;
    await erasePayloads(this.#parts, workspaceId, [...others, first], draft, cause);
    this.#parts.forgetting.deleted();
  }

  async #eraseEvents(
    workspaceId: number,
    taskId: string,
    { intentSeq, first, others }: QuotedTexts,
  ): Promise<void> {
    const { db, hub } = this.#parts;
    const task = await findTask(db, workspaceId, taskId);
    if (!task) return;
    const erased = new Set([first, ...others].filter(({ kind }) => kind === "input").map(({ seq }) => seq));
    const calls = task.toolsCalled.filter((each) => erased.has(each.intentSeq)).map(({ id }) => id);
    // Arguments presented for approval, even if the call was never made.
    const asked = (await approvalsOf(db, workspaceId, taskId))
      .filter(({ pendingSeq, argumentsSeq }) => erased.has(pendingSeq) || erased.has(argumentsSeq))
      .map(({ callId }) => callId);
    // If only the answer contains the document, its quoting parts are unknown, so all of it is erased.
    const call = task.toolsCalled.find((each) => each.intentSeq === intentSeq);
    await eraseEvents(db, task, {
      prompt: false,
      argumentsOf: new Set([...calls, ...asked]),
      output: { afterCall: call?.id ?? null },
    });
    hub.erased(taskId);
  }

  #recordPending(erasure: Erasure, running: number): Promise<number> {
    const { ledger } = this.#parts;
    const { workspaceId, document } = erasure;
    const detail = { document, running };
    return ledger.record(workspaceId, { ...draftOf(erasure, "pending"), detail });
  }
}

function draftOf({ actor, requestId }: Erasure, outcome: "succeeded" | "pending"): EntryDraft {
  return { phase: "single", action: "payload.erase", outcome, channel: "system", actor, requestId };
}

interface NoteRow {
  readonly key: string;
  readonly value: string;
  readonly seal: Uint8Array | null;
}

const PREFIX = "quoted/";
const [TASK, TOOL, REF] = [
  entryField("l.bytes", "task"),
  entryField("l.bytes", "tool"),
  entryField("l.bytes", "ref"),
];

function keyOf({ workspaceId, document, requestId }: Omit<Erasure, "running">): string {
  return `${PREFIX}${workspaceId}/${document}/${requestId}`;
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
