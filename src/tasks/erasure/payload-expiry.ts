import { type Clock, every } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { LedgerHistories } from "../../gate/ledger-histories.ts";
import { endOfSlice } from "../../ledger/erase.ts";
import {
  deletePayloadsUpTo,
  type ExpiryRun,
  lastOlderThan,
  noteExpiry,
  readExpiry,
  recordExpiry,
} from "../../ledger/expiry.ts";
import type { LedgerFaults } from "../../ledger/faults.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import { type LedgerLists, requireSigned } from "../../ledger/reading/lists.ts";
import { parsedEntry } from "../../ledger/reading/parsed-entry.ts";
import type { Leases } from "../../nodes/leases.ts";
import { inListSql, listsOf } from "../../store/common-sql.ts";
import type { Db, Tx } from "../../store/db.ts";
import type { Forgetting } from "../../store/forgetting.ts";
import type { EventHub } from "../events/hub.ts";
import { findTask } from "../rows/tasks.ts";
import type { TaskSignals } from "../signals.ts";
import { backgroundIdOf } from "./client-requests.ts";
import { ALL_TEXTS, eraseEvents } from "./erase-events.ts";
import { deleteEventsOf } from "./response-events.ts";
import { firstOpenResponse, forgetResponsesUpTo } from "./stored-responses.ts";

const RUN_MS = 3_600_000;
/** The lease of the node that erases by age. */
const LEASE = "expiry";
/** Tasks whose events are processed concurrently, sharing syncs. */
const TASKS_AT_ONCE = 16;

export interface ExpiryParts {
  readonly signals: Pick<TaskSignals, "responsesErased">;
  readonly db: Db;
  readonly ledger: Ledger;
  readonly lists: LedgerLists;
  readonly faults: Pick<LedgerFaults, "report">;
  readonly histories: Pick<LedgerHistories, "of" | "catchUp">;
  readonly leases: Leases;
  readonly hub: EventHub;
  readonly forgetting: Forgetting;
  readonly clock: Clock;
  readonly log: Log;
  readonly workspaces: { list(): readonly { readonly id: number }[] };
  /** How many days payloads are stored. */
  readonly days: number;
}

/**
 * Erases payloads by age, together with the texts in stored events, at the start and every hour. It erases the
 * payloads of a prefix of the ledger, so a single entry can record any number of them. Payloads after the dispatch of
 * an unfinished task or response remain. Texts in events are erased with the payload that contains the same text; a
 * model's text is erased with its task's last entry. One node at a time does it.
 */
export class PayloadExpiry {
  readonly #parts: ExpiryParts;
  #running: Promise<void> | null = null;
  #end = () => {};
  #stopped = false;

  constructor(parts: ExpiryParts) {
    this.#parts = parts;
  }

  /** MUST follow the start of the tasks. */
  start(): void {
    this.#end = this.#parts.leases.hold(LEASE, () => {
      void this.run();
      return every(this.#parts.clock, RUN_MS, () => void this.run());
    });
  }

  /** Resolves when nothing is being erased any more. The next start resumes an interrupted run. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#end();
    await this.#running;
  }

  /** Erases everything that is old enough. If a run is in progress, waits for that one. Never rejects. */
  run(): Promise<void> {
    this.#running ??= this.#run().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  async #run(): Promise<void> {
    for (const { id } of this.#parts.workspaces.list()) {
      if (this.#stopped) return;
      try {
        await this.#expire(id);
      } catch (error) {
        this.#parts.log.warn("expired payloads will be erased later", { workspace: id, error });
      }
    }
  }

  async #expire(workspaceId: number): Promise<void> {
    const { db, ledger, lists, histories, clock, days, forgetting } = this.#parts;
    await histories.catchUp(workspaceId);
    const expiry = await readExpiry(db, workspaceId);
    if (expiry.isChanged) this.#reportChanged(workspaceId, "was not written by this server");
    const { done, run: noted } = expiry;
    const run = noted && (await this.#isOwn(workspaceId, noted)) ? noted : null;
    const aged = await lastOlderThan(lists, workspaceId, days, clock.now());
    const open = Math.min(
      await firstOpenDispatch(db, workspaceId),
      firstOpenResponse(histories, workspaceId),
    );
    const limit = Math.min(aged, open - 1);
    // A run that was begun is completed, even if payloads are now kept for longer.
    const upTo = Math.max(limit, run?.upTo ?? 0);
    if (upTo <= done) return;
    const expiring = new ExpiryProgress(
      workspaceId,
      done,
      run === null ? { upTo, days, payloads: 0 } : { ...run, ...(upTo > run.upTo ? { upTo, days } : {}) },
      run !== null,
    );
    await this.#eraseTasks(expiring);
    await this.#eraseResponses(expiring);
    await this.#erasePayloads(expiring);
    if (this.#stopped) return;
    await db.tx(workspaceId, async (tx) => {
      if (expiring.isNoted) await recordExpiry(tx, ledger, workspaceId, expiring.run);
      else noteExpiry(tx, workspaceId, { done: upTo, run: null });
    });
    if (!expiring.isNoted) return;
    forgetting.deleted();
    await forgetting.forget();
  }

  /**
   * Whether a server could have begun this interrupted run. The entry that ends the run is signed, but its note is
   * not. Anyone who can write to the file could otherwise make the entry claim that newer texts were erased by age.
   */
  async #isOwn(workspaceId: number, { upTo, days }: ExpiryRun): Promise<boolean> {
    const { lists, clock } = this.#parts;
    const isNumber = Number.isSafeInteger(upTo) && Number.isSafeInteger(days) && days >= 1;
    if (isNumber && upTo <= (await lastOlderThan(lists, workspaceId, days, clock.now()))) return true;
    this.#reportChanged(
      workspaceId,
      "names entries that are not that old by this server's clock; the run is not resumed",
    );
    return false;
  }

  #reportChanged(workspaceId: number, what: string): void {
    this.#parts.faults.report(workspaceId, {
      kind: "expiry_changed",
      message: `the note of a run that erases expired texts ${what}`,
    });
  }

  /** Erases the stored events of tasks whose last entry is old enough. */
  async #eraseTasks(expiring: ExpiryProgress): Promise<void> {
    const { workspaceId, done, run } = expiring;
    const span = { first: done + 1, last: run.upTo, order: "asc" } as const;
    for await (const entries of this.#parts.lists.read(workspaceId, { action: "task.dispatch" }, span)) {
      const tasks = entries.flatMap(({ bytes }) => finishedBy(bytes));
      for (let at = 0; at < tasks.length; at += TASKS_AT_ONCE) {
        if (this.#stopped) return;
        const some = tasks.slice(at, at + TASKS_AT_ONCE);
        await Promise.all(some.map((id) => this.#eraseTask(expiring, id)));
      }
    }
  }

  async #eraseTask(expiring: ExpiryProgress, id: string): Promise<void> {
    const { workspaceId } = expiring;
    await eraseEvents(this.#parts.db, { workspaceId, id }, ALL_TEXTS, (tx) => expiring.note(tx, 0));
    this.#parts.hub.erased(id);
  }

  /** Erases the stored events of responses with a request that is old enough, whether or not they still have a row. */
  async #eraseResponses(expiring: ExpiryProgress): Promise<void> {
    const { db, lists } = this.#parts;
    const { workspaceId, done, run } = expiring;
    const span = { first: done + 1, last: run.upTo, order: "asc" } as const;
    for await (const entries of lists.read(workspaceId, { action: "response.dispatch" }, span)) {
      const ids = entries.flatMap(({ bytes }) => backgroundIdOf(parsedEntry(bytes)) ?? []);
      for (const id of ids) {
        if (this.#stopped) return;
        // One by one, because the events of a response may have megabytes.
        await db.tx(
          null,
          async (tx) => {
            if ((await deleteEventsOf(tx, workspaceId, [id])) > 0) await expiring.note(tx, 0);
          },
          { turnOf: workspaceId },
        );
      }
    }
  }

  async #erasePayloads(expiring: ExpiryProgress): Promise<void> {
    const { db, signals } = this.#parts;
    const { workspaceId, run } = expiring;
    for (let after = 0; !this.#stopped; ) {
      const end = await endOfSlice(db, workspaceId, after, run.upTo);
      if (end === null) return;
      for (const id of await this.#goingOn(expiring, after, end)) await this.#eraseBeginning(expiring, id);
      const from = after;
      await db.tx(
        null,
        async (tx) => {
          await expiring.note(tx, await deletePayloadsUpTo(tx, workspaceId, from, end));
          forgetResponsesUpTo(tx, workspaceId, end, signals.responsesErased);
        },
        { turnOf: workspaceId },
      );
      after = end;
    }
  }

  /** Tasks with payloads in this slice that ended after the last entry that is old enough. */
  async #goingOn({ workspaceId, run }: ExpiryProgress, after: number, end: number): Promise<string[]> {
    const { db, lists } = this.#parts;
    const rows = await db.all<{ seq: number; bytes: string }>(
      `SELECT seq, bytes FROM ledger WHERE workspace_id = $1 AND seq > $2 AND seq <= $3
         AND seq IN (SELECT p.seq FROM payloads AS p WHERE p.workspace_id = $1 AND p.seq > $2 AND p.seq <= $3)
       ORDER BY seq`,
      [workspaceId, after, end],
    );
    /** The first entry of each task that has one in this slice. */
    const first = new Map<string, { readonly seq: number }>();
    for (const { seq, bytes } of rows) {
      const { task } = parsedEntry(bytes);
      if (task !== undefined && !first.has(task)) first.set(task, { seq });
    }
    const found: string[] = [];
    for (const ids of listsOf([...first.keys()])) {
      const later = await db.all<{ id: string }>(
        `SELECT id FROM tasks WHERE workspace_id = $1 AND finish_seq > $2 AND ${inListSql("id", 3)}`,
        [workspaceId, run.upTo, ...ids],
      );
      for (const { id } of later) found.push(id);
    }
    await requireSigned(
      lists,
      workspaceId,
      found.flatMap((id) => first.get(id) ?? []),
    );
    return found;
  }

  async #eraseBeginning(expiring: ExpiryProgress, id: string): Promise<void> {
    const { db, hub } = this.#parts;
    const { workspaceId, run } = expiring;
    const task = await findTask(db, workspaceId, id);
    if (!task) return;
    const calls = task.toolsCalled.filter(({ intentSeq }) => intentSeq <= run.upTo);
    const texts = {
      prompt: task.dispatchSeq <= run.upTo,
      argumentsOf: new Set(calls.map((call) => call.id)),
      output: null,
    };
    await eraseEvents(db, task, texts, (tx) => expiring.note(tx, 0));
    hub.erased(id);
  }
}

/** One run over a workspace, and how much of it is noted in the store. */
class ExpiryProgress {
  readonly workspaceId: number;
  readonly done: number;
  #run: ExpiryRun;
  #isNoted: boolean;

  constructor(workspaceId: number, done: number, run: ExpiryRun, isNoted: boolean) {
    this.workspaceId = workspaceId;
    this.done = done;
    this.#run = run;
    this.#isNoted = isNoted;
  }

  get run(): ExpiryRun {
    return this.#run;
  }

  /** Whether anything was erased. */
  get isNoted(): boolean {
    return this.#isNoted;
  }

  /** Called in each transaction that erases something. */
  async note(tx: Tx, payloads: number): Promise<void> {
    if (this.#isNoted && payloads === 0) return;
    const run = { ...this.#run, payloads: this.#run.payloads + payloads };
    noteExpiry(tx, this.workspaceId, { done: this.done, run });
    tx.onCommit(() => {
      this.#run = run;
      this.#isNoted = true;
    });
  }
}

/** The task that ended with this entry, if one did. */
function finishedBy(bytes: string): string[] {
  const { phase, task } = parsedEntry(bytes);
  return phase === "outcome" && task !== undefined ? [task] : [];
}

/** The dispatch of the oldest unfinished task; infinite if there is none. */
async function firstOpenDispatch(db: Db, workspaceId: number): Promise<number> {
  const row = await db.get<{ seq: number | null }>(
    "SELECT MIN(dispatch_seq) AS seq FROM tasks WHERE workspace_id = $1 AND finished_at IS NULL",
    [workspaceId],
  );
  return row?.seq ?? Number.POSITIVE_INFINITY;
}
