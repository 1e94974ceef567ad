import { type Clock, every } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { RunningCalls } from "../../gate/direct/running-calls.ts";
import type { LedgerHistories } from "../../gate/ledger-histories.ts";
import { erasePayloads } from "../../ledger/erase.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { ErasedPayload } from "../../ledger/proof/erasure.ts";
import type { LedgerLists } from "../../ledger/reading/lists.ts";
import type { Leases } from "../../nodes/leases.ts";
import type { Db, Tx } from "../../store/db.ts";
import type { Forgetting } from "../../store/forgetting.ts";
import { type StoredRow, sealedColumns } from "../../store/seals/seals.ts";
import { approvalsOf } from "../approvals/rows.ts";
import type { EventHub } from "../events/hub.ts";
import { findTask, lastSeq } from "../rows/tasks.ts";
import type { TaskSignals } from "../signals.ts";
import { CallsInFlight } from "./calls-in-flight.ts";
import { eraseEvents } from "./erase-events.ts";
import { type DocumentErasure, draftOf, ErasureNote, findDeletion, storedErasures } from "./erasure-note.ts";
import { type QuotedTexts, QuoteSearch } from "./find-quotes.ts";
import { QuotingEvents } from "./quoting-events.ts";
import { eraseEventsWith } from "./stored-responses.ts";

const RETRY_MS = 30_000;
/** The lease of the node that resumes erasures. */
const LEASE = "erasures";
/** How often that node looks for erasures whose node may have died. It resumes each only once. */
const RESUME_MS = 60_000;

export interface QuotedPayloadsParts {
  readonly signals: Pick<TaskSignals, "responsesErased">;
  readonly db: Db;
  readonly ledger: Ledger;
  readonly lists: LedgerLists;
  readonly histories: Pick<LedgerHistories, "of" | "catchUp" | "taken">;
  readonly leases: Leases;
  readonly running: Pick<RunningCalls, "requests" | "ended">;
  readonly hub: EventHub;
  readonly forgetting: Forgetting;
  readonly clock: Clock;
  readonly log: Log;
}

const NONE: ReadonlySet<string> = new Set();

/** What is searched for quotes, and the calls that may still add some. */
interface Searches {
  readonly search: QuoteSearch;
  readonly events: QuotingEvents;
  readonly calls: CallsInFlight;
}

/**
 * Erases quotes of deleted documents from tasks: each tool result that contains a document's id, and everything that
 * the same task wrote or requested after it, in payloads and in stored events. If a task's messages name the
 * document, or it continues the conversation of a task that quotes it, everything except its input is erased. The
 * entries and their hashes remain. Responses that continue a quoting response with `previous_response_id`, or repeat
 * its items, are erased too. The text cannot be removed from the memory of a running task or a call in flight, so
 * their quotes are erased as soon as they end; until then the ledger records them as pending.
 */
export class QuotedPayloads {
  readonly #parts: QuotedPayloadsParts;
  readonly #following = new Set<Promise<void>>();
  /** Keys of erasures in progress. */
  readonly #active = new Set<string>();
  /** The calls that erasures wait for. */
  readonly #awaited = new Set<CallsInFlight>();
  #cancelRetry: (() => void) | null = null;
  #giveUp = () => {};
  #stopped = false;

  constructor(parts: QuotedPayloadsParts) {
    this.#parts = parts;
  }

  /**
   * Resumes erasures that an earlier process or another node did not complete. One node at a time does it. If the node
   * that began an erasure still lives, both do the same, and the ledger may record twice that quotes are pending. MUST
   * follow the start of the tasks.
   */
  start(): void {
    this.#giveUp = this.#parts.leases.hold(LEASE, () => {
      this.#follow(this.#resume());
      return every(this.#parts.clock, RESUME_MS, () => this.#follow(this.#resume()));
    });
  }

  /**
   * Resolves when nothing is being erased any more. The next start resumes the rest. MUST follow the end of the
   * tasks.
   */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#giveUp();
    this.#cancelRetry?.();
    for (const calls of this.#awaited) calls.close();
    await Promise.all(this.#following);
  }

  /**
   * Stores a note of the erasure in the transaction that hides the document. Nothing can read the document
   * afterwards.
   * @returns a function that performs the erasure, to be called after the commit. It resolves once only running tasks
   *   and calls in flight still quote the document. It never rejects: failures are retried
   */
  async begin(
    tx: Tx,
    of: Omit<DocumentErasure, "running"> & { readonly deletionSeq: number },
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
      this.#follow(this.#resume());
    });
  }

  async #erase(erasure: DocumentErasure): Promise<void> {
    const note = new ErasureNote(this.#parts.db, erasure);
    const { key } = note;
    if (this.#active.has(key)) return;
    this.#active.add(key);
    let close = () => {};
    const failed = (error: unknown) => {
      note.isAbandoned = true;
      this.#later(error);
    };
    const finished = () => {
      this.#active.delete(key);
      close();
    };
    let rest = Promise.resolve();
    try {
      const { workspaceId } = erasure;
      const { ended, running } = await this.#begunTasks(erasure);
      const before = erasure.deletionSeq ?? (await findDeletion(this.#parts.lists, erasure));
      // Tasks that still run are erased at their end.
      const tasks = new Map([...ended, ...running.map((id) => [id, 0] as const)]);
      const search = new QuoteSearch(this.#parts, erasure, 0, { before, tasks, whole: NONE });
      const events = new QuotingEvents(this.#parts, erasure, before);
      const calls = await CallsInFlight.open(this.#parts, {
        workspaceId,
        before,
        requests: search.requests,
      });
      this.#awaited.add(calls);
      close = () => {
        calls.close();
        this.#awaited.delete(calls);
      };
      const searches = { search, events, calls };
      await this.#eraseNew(note, searches);
      const pending = { running: running.length + (await this.#eraseContinuing(note)), calls: calls.size };
      const end = () => this.#afterTheirEnd(note, running, () => this.#eraseAnswers(note, searches));
      if (pending.running + pending.calls > 0) {
        await this.#recordPending(erasure, pending);
        rest = end();
      } else await end();
    } catch (error) {
      failed(error);
    }
    this.#follow(rest.catch(failed).finally(finished));
  }

  /**
   * The tasks that had begun by the time of the deletion: those that have ended, with their last entry, and those
   * that still run.
   */
  async #begunTasks({ workspaceId, running: begun }: DocumentErasure): Promise<{
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

  /** @param eraseAnswers erases the answers that calls in flight still return */
  async #afterTheirEnd(
    note: ErasureNote,
    running: readonly string[],
    eraseAnswers: () => Promise<void>,
  ): Promise<void> {
    const [haveEnded] = await Promise.all([this.#eraseRunning(note, running), eraseAnswers()]);
    if (haveEnded) await this.#done(note);
  }

  /** @returns false if the process stops before a task has ended. The next start then continues */
  async #eraseRunning(note: ErasureNote, running: readonly string[]): Promise<boolean> {
    for (const id of running) if (!(await this.#eraseEnded(note, id, NONE))) return false;
    while ((await this.#eraseContinuing(note)) > 0) {
      const [first] = note.continuing;
      if (first !== undefined && !(await this.#eraseEnded(note, first, new Set([first])))) return false;
    }
    return true;
  }

  /** Erases the answer of each client's call in flight as soon as it arrives. */
  async #eraseAnswers(note: ErasureNote, searches: Searches): Promise<void> {
    const { calls } = searches;
    while ((calls.size > 0 || calls.hasEnded) && !this.#isOver(note)) {
      await calls.nextEnd();
      await this.#eraseNew(note, searches);
    }
  }

  /** Erases the quotes written since the last call, and repeats until it finds none. */
  async #eraseNew(note: ErasureNote, { search, events, calls }: Searches): Promise<void> {
    for (let isLast = false; !isLast && !this.#isOver(note); ) {
      calls.mark();
      const found = await search.next(() => this.#isOver(note));
      const open = calls.requests();
      const quoting = [...search.requests].filter((request) => open.has(request));
      // The requests are noted first: once their prompts are erased, nothing shows that their answers quote the
      // document.
      await note.setRequests(new Set([...note.requests, ...quoting]));
      await this.#eraseFound(note, found, NONE);
      const haveEvents = await events.erase(() => this.#isOver(note));
      if (haveEvents) this.#parts.forgetting.deleted();
      if (!this.#isOver(note)) await note.setRequests(new Set(quoting));
      // Other calls may take a long time to end, and erased texts must not stay in the write-ahead log until then.
      if (found.size > 0 || haveEvents) await this.#parts.forgetting.forget();
      isLast = found.size === 0 && !calls.hasEnded;
    }
  }

  /**
   * Erases the ended tasks that continue the conversation of a task that quotes the document.
   * @returns how many of them are still running
   */
  async #eraseContinuing(note: ErasureNote): Promise<number> {
    const { db } = this.#parts;
    const { workspaceId } = note.erasure;
    for (const id of note.quoting) await note.replace(id, await this.#successorsOf(workspaceId, id));
    const running = new Set<string>();
    for (let id = first(note, running); id !== undefined && !this.#isOver(note); id = first(note, running)) {
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
    if (this.#isOver(note) || (task && task.finishedAt === null)) return false;
    if (!task) return true;
    const tasks = new Map([[id, await lastSeq(db, task)]]);
    const search = new QuoteSearch(this.#parts, note.erasure, task.dispatchSeq - 1, {
      before: 0,
      tasks,
      whole,
    });
    await this.#eraseFound(note, await search.next(() => this.#isOver(note)), whole);
    return true;
  }

  /** If the log cannot be emptied now, the next start tries again and finds nothing more to erase. */
  async #done(note: ErasureNote): Promise<void> {
    if (this.#isOver(note)) return;
    if (await this.#parts.forgetting.forget()) await note.done();
  }

  /** Whether the process is stopping, or the erasure has failed and another continues it. */
  #isOver({ isAbandoned }: ErasureNote): boolean {
    return this.#stopped || isAbandoned;
  }

  /** @param whole tasks that need no note, because the tasks that continue them are found without their texts */
  async #eraseFound(
    note: ErasureNote,
    found: ReadonlyMap<string, QuotedTexts>,
    whole: ReadonlySet<string>,
  ): Promise<void> {
    const { erasure } = note;
    // Noted first: once its texts are gone, nothing shows that a task quoted the document.
    await note.addQuoting([...found.keys()].filter((task) => task !== "" && !whole.has(task)));
    for (const [task, quotes] of found) {
      if (this.#isOver(note)) return;
      if (task !== "") await this.#eraseEvents(erasure.workspaceId, task, quotes);
      else await eraseEventsWith(this.#parts, erasure.workspaceId, textsIn(quotes));
      await this.#erasePayloads(erasure, task, quotes);
    }
  }

  /** Erases the output that identifies the quotes last. */
  async #erasePayloads(
    erasure: DocumentErasure,
    task: string,
    { first, others }: QuotedTexts,
  ): Promise<void> {
    const { workspaceId, document } = erasure;
    const draft = { ...draftOf(erasure, "succeeded"), task: task === "" ? undefined : task };
    const cause = { reason: "document_deleted", document } as const;
    // A later response is found only through the earlier one that it continues, so the earlier one is erased after
    // it.
    const ordered = task === "" ? others.toReversed() : others;
    await erasePayloads(this.#parts, workspaceId, first ? [...ordered, first] : ordered, draft, cause);
    this.#parts.forgetting.deleted();
  }

  async #eraseEvents(workspaceId: number, taskId: string, quotes: QuotedTexts): Promise<void> {
    const { db, hub } = this.#parts;
    const task = await findTask(db, workspaceId, taskId);
    if (!task) return;
    const inputs = textsIn(quotes).filter(({ kind }) => kind === "input");
    const erased = new Set(inputs.map(({ seq }) => seq));
    const calls = task.toolsCalled.filter((each) => erased.has(each.intentSeq)).map(({ id }) => id);
    // Arguments presented for approval, even if the call was never made.
    const asked = (await approvalsOf(db, workspaceId, taskId))
      .filter(({ pendingSeq, argumentsSeq }) => erased.has(pendingSeq) || erased.has(argumentsSeq))
      .map(({ callId }) => callId);
    // If only the answer contains the document, its quoting parts are unknown, so all of it is erased.
    const call = task.toolsCalled.find((each) => each.intentSeq === quotes.intentSeq);
    await eraseEvents(db, task, {
      // The prompt of a client's own call is its arguments.
      prompt: erased.has(task.dispatchSeq),
      argumentsOf: new Set([...calls, ...asked]),
      output: { afterCall: call?.id ?? null },
    });
    hub.erased(taskId);
  }

  /** Records how many running tasks and calls in flight the erasure waits for. */
  #recordPending(
    erasure: DocumentErasure,
    { running, calls }: { readonly running: number; readonly calls: number },
  ): Promise<number> {
    const { ledger } = this.#parts;
    const { workspaceId, document } = erasure;
    const detail = { document, running, calls };
    return ledger.record(workspaceId, { ...draftOf(erasure, "pending"), detail });
  }
}

function textsIn({ first, others }: QuotedTexts): readonly ErasedPayload[] {
  return first ? [first, ...others] : others;
}

/** The first task that continues a conversation, other than these. */
function first({ continuing }: ErasureNote, others: ReadonlySet<string>): string | undefined {
  return continuing.find((id) => !others.has(id));
}
