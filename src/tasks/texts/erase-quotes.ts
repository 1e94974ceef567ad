import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { EntryDraft } from "../../ledger/entry.ts";
import { erasePayloads } from "../../ledger/erase.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { LedgerLists } from "../../ledger/reading/lists.ts";
import { parsedEntry } from "../../ledger/reading/parsed-entry.ts";
import type { Db, Tx } from "../../store/db.ts";
import type { Forgetting } from "../../store/forgetting.ts";
import { type StoredRow, sealedColumns } from "../../store/seals/seals.ts";
import { approvalsOf } from "../approvals/rows.ts";
import type { TaskEventHub } from "../events/hub.ts";
import { findTask, lastSeq } from "../rows/tasks.ts";
import { eraseEvents } from "./erase-events.ts";
import { type Erasure, ErasureNote, storedErasures } from "./erasure-note.ts";
import { type Extent, findQuotes, type QuotedTexts } from "./find-quotes.ts";
import { eraseResponseEvents } from "./kept-responses.ts";

const RETRY_MS = 30_000;
/** How often to look whether clients' requests have ended. */
const LOOK_MS = 1_000;

export interface QuotedParts {
  readonly db: Db;
  readonly ledger: Ledger;
  readonly lists: LedgerLists;
  readonly hub: TaskEventHub;
  readonly forgetting: Forgetting;
  readonly clock: Clock;
  readonly log: Log;
  /** Intents of clients' calls, and of responses in the background, that have no outcome. */
  readonly openCalls: (workspaceId: number) => ReadonlySet<number>;
}

const NONE: ReadonlySet<string> = new Set();

/**
 * Erases quotes of deleted documents from tasks: each tool result that contains a document's id, and everything that
 * the same task wrote or requested after it, in payloads and in stored events. If a task's messages name the
 * document, or it continues the conversation of a task that quotes it, everything except its input is erased. The
 * entries and their hashes remain. Responses that continue a quoting one with `previous_response_id`, or repeat its
 * items, are erased too. The text cannot be removed from the memory of a running task, so its quotes are
 * erased as soon as it ends; until then the ledger records them as pending.
 */
export class QuotedPayloads {
  readonly #parts: QuotedParts;
  readonly #following = new Set<Promise<void>>();
  /** Keys of erasures in progress. */
  readonly #active = new Set<string>();
  #cancelRetry: (() => void) | null = null;
  readonly #sleeping = new Set<() => void>();
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
    for (const wake of this.#sleeping) wake();
    await Promise.all(this.#following);
  }

  /**
   * Notes an erasure in the transaction that hides the document. Nothing can read the document afterwards.
   * @returns a function that performs the erasure, to be called after the commit. It resolves once only running tasks
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
    await new ErasureNote(this.#parts.db, erasure).begin(tx);
    return () => this.#erase(erasure);
  }

  #follow(work: Promise<void>): void {
    this.#following.add(work);
    void work.finally(() => this.#following.delete(work));
  }

  async #resume(): Promise<void> {
    try {
      for (const erasure of await storedErasures(this.#parts.db)) await this.#erase(erasure);
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
    const note = new ErasureNote(this.#parts.db, erasure);
    const { key } = note;
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
      await this.#eraseQuotes(note, 0, { before, tasks, whole: NONE });
      const continuing = await this.#eraseContinuing(note);
      const pending = running.length + continuing + note.requests.length;
      if (pending > 0) {
        await this.#recordPending(erasure, pending);
        // What is erased by now is gone from the file too. If the log cannot be emptied now, the end does it.
        await this.#parts.db.forget();
        rest = this.#afterTheirEnd(note, running, before);
      } else await this.#done(note);
    } catch (error) {
      failed(error);
    }
    this.#follow(rest.catch(failed).finally(finished));
  }

  /**
   * The tasks that had begun by the time of the deletion: those that have ended, with their last entry, and those
   * that still run.
   */
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

  /** The entry of the deletion, for a note that does not name it. 0 if it does not exist. */
  async #findDeletion({ workspaceId, requestId }: Erasure): Promise<number> {
    const all = { first: 1, last: Number.MAX_SAFE_INTEGER, order: "asc" } as const;
    for await (const entries of this.#parts.lists.read(workspaceId, { action: "vault.delete" }, all)) {
      const found = entries.find(({ bytes }) => parsedEntry(bytes).request_id === requestId);
      if (found) return found.seq;
    }
    return 0;
  }

  async #afterTheirEnd(note: ErasureNote, running: readonly string[], before: number): Promise<void> {
    // A task that does not end is left to the next start, because the process stops first.
    for (const id of running) if (!(await this.#eraseEnded(note, id, NONE))) return;
    while ((await this.#eraseContinuing(note)) > 0) {
      const [first] = note.continuing;
      if (first !== undefined && !(await this.#eraseEnded(note, first, new Set([first])))) return;
    }
    while (note.requests.length > 0 && !this.#stopped) {
      const open = await this.#openRequests(note.erasure.workspaceId);
      if (note.requests.some((request) => open.has(request))) await this.#sleep();
      else await this.#eraseQuotes(note, 0, { before, tasks: new Map(), whole: NONE });
    }
    await this.#done(note);
  }

  /** Waits a moment, or until the process stops. */
  async #sleep(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.#parts.clock.after(LOOK_MS, resolve);
    this.#sleeping.add(resolve);
    await promise;
    cancel();
    this.#sleeping.delete(resolve);
  }

  /** The ids of clients' requests in progress. */
  async #openRequests(workspaceId: number): Promise<ReadonlySet<string>> {
    const { lists, openCalls } = this.#parts;
    const entries = await lists.entries(workspaceId, openCalls(workspaceId));
    return new Set([...entries.values()].flatMap(({ bytes }) => parsedEntry(bytes).request_id ?? []));
  }

  /**
   * Erases the ended tasks that continue the conversation of a task that quotes the document.
   * @returns how many of them still run
   */
  async #eraseContinuing(note: ErasureNote): Promise<number> {
    const { db } = this.#parts;
    const { workspaceId } = note.erasure;
    for (const id of note.quoting) await note.replace(id, await this.#successorsOf(workspaceId, id));
    const running = new Set<string>();
    for (let id = first(note, running); id !== undefined && !this.#stopped; id = first(note, running)) {
      const task = await findTask(db, workspaceId, id);
      if (task && task.finishedAt === null) running.add(id);
      else {
        if (task) await this.#eraseEnded(note, id, new Set([id]));
        await note.replace(id, await this.#successorsOf(workspaceId, id));
      }
    }
    return running.size;
  }

  /** Tasks that have begun to continue a task's conversation. */
  async #successorsOf(workspaceId: number, id: string): Promise<readonly string[]> {
    const { db } = this.#parts;
    const rows = await db.all<StoredRow<"tasks">>(
      `SELECT ${sealedColumns("tasks")} FROM tasks
       WHERE workspace_id = $1 AND continues = $2 AND started_at IS NOT NULL`,
      [workspaceId, id],
    );
    // Nothing is erased in anyone's name because of a changed row.
    return rows.filter((row) => db.seals.fits("tasks", row)).map((row) => String(row.id));
  }

  /**
   * Waits for a task to end, and erases its quotes.
   * @returns false if it has not ended because the process is stopping
   */
  async #eraseEnded(note: ErasureNote, id: string, whole: ReadonlySet<string>): Promise<boolean> {
    const { db, hub } = this.#parts;
    const log = hub.find(id);
    while (log && !log.closed) await new Promise<void>((resolve) => log.onChange(resolve));
    const task = await findTask(db, note.erasure.workspaceId, id);
    if (this.#stopped || (task && task.finishedAt === null)) return false;
    if (!task) return true;
    const tasks = new Map([[id, await lastSeq(db, task)]]);
    await this.#eraseQuotes(note, task.dispatchSeq - 1, { before: 0, tasks, whole });
    return true;
  }

  /** If the log cannot be emptied now, the next start tries again and finds nothing more to erase. */
  async #done(note: ErasureNote): Promise<void> {
    const { db, log } = this.#parts;
    if (this.#stopped) return;
    if (await db.forget()) await note.done();
    else log.warn("erased texts remain in the database's log until its readers are done");
  }

  /** Erases quotes in the entries above `after` that are within the extent. */
  async #eraseQuotes(note: ErasureNote, after: number, extent: Extent): Promise<void> {
    const { erasure } = note;
    const { workspaceId, document } = erasure;
    // Only a search through everything finds clients' requests.
    const isAll = extent.before > 0;
    const open = isAll ? await this.#openRequests(workspaceId) : NONE;
    const quoted = { workspaceId, document, requests: note.requests };
    const { texts, requests } = await findQuotes(
      this.#parts,
      quoted,
      after,
      extent,
      open,
      () => this.#stopped,
    );
    if (this.#stopped) return;
    // Noted first: once its texts are gone, nothing shows that a task or request quoted the document.
    const quoting = [...texts.keys()].filter((task) => task !== "" && !extent.whole.has(task));
    await note.addQuoting(quoting, isAll ? requests : note.requests);
    for (const [task, quotes] of texts) {
      if (this.#stopped) return;
      if (task !== "") await this.#eraseEvents(erasure.workspaceId, task, quotes);
      else await this.#eraseResponseEvents(erasure.workspaceId, quotes);
      await this.#erasePayloads(erasure, task, quotes);
    }
  }

  /** Erases the output that identifies the quotes last. */
  async #erasePayloads(erasure: Erasure, task: string, { first, others }: QuotedTexts): Promise<void> {
    const { workspaceId, document } = erasure;
    const draft = { ...draftOf(erasure, "succeeded"), task: task === "" ? undefined : task };
    const cause = { reason: "document_deleted", document } as const;
    // A later response is found only by the earlier one that it continues, which is therefore erased after it.
    const ordered = task === "" ? others.toReversed() : others;
    await erasePayloads(this.#parts, workspaceId, first ? [...ordered, first] : ordered, draft, cause);
    this.#parts.forgetting.deleted();
  }

  async #eraseResponseEvents(workspaceId: number, { first, others }: QuotedTexts): Promise<void> {
    const seqs = new Set((first ? [first, ...others] : others).map(({ seq }) => seq));
    await this.#parts.db.tx((tx) => eraseResponseEvents(tx, workspaceId, [...seqs]));
  }

  async #eraseEvents(
    workspaceId: number,
    taskId: string,
    { intentSeq, first, others }: QuotedTexts,
  ): Promise<void> {
    const { db, hub } = this.#parts;
    const task = await findTask(db, workspaceId, taskId);
    if (!task) return;
    const erased = new Set(
      (first ? [first, ...others] : others).filter(({ kind }) => kind === "input").map(({ seq }) => seq),
    );
    const calls = task.toolsCalled.filter((each) => erased.has(each.intentSeq)).map(({ id }) => id);
    // Arguments presented for approval, even if the call was never made.
    const asked = (await approvalsOf(db, workspaceId, taskId))
      .filter(({ pendingSeq, argumentsSeq }) => erased.has(pendingSeq) || erased.has(argumentsSeq))
      .map(({ callId }) => callId);
    // If only the answer contains the document, its quoting parts are unknown, so all of it is erased.
    const call = task.toolsCalled.find((each) => each.intentSeq === intentSeq);
    await eraseEvents(db, task, {
      // The prompt of a client's own call is its arguments.
      prompt: erased.has(task.dispatchSeq),
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

/** The first task that continues a conversation, other than these. */
function first({ continuing }: ErasureNote, others: ReadonlySet<string>): string | undefined {
  return continuing.find((id) => !others.has(id));
}
