import { Problem } from "../../base/errors.ts";
import { takeWholeTurn } from "../../base/inflow.ts";
import type { Call } from "../../gate/call.ts";
import type { RunningCalls } from "../../gate/direct/running-calls.ts";
import type { LedgerHistories } from "../../gate/ledger-histories.ts";
import { deletePayloads, endOfSlice, erasePayloads, erasureDetail } from "../../ledger/erase.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import { LedgerChanged } from "../../ledger/ledger-changed.ts";
import { type ErasedPayload, NAMED_AT_ONCE } from "../../ledger/proof/erasure.ts";
import { type LedgerLists, requireSigned } from "../../ledger/reading/lists.ts";
import { type ParsedEntry, parsedEntry } from "../../ledger/reading/parsed-entry.ts";
import { ledgerSize } from "../../ledger/reading/query.ts";
import type { Db, Tx } from "../../store/db.ts";
import type { Forgetting } from "../../store/forgetting.ts";
import type { ApprovalEvidence } from "../approvals/evidence.ts";
import { type Approval, approvalsOf } from "../approvals/rows.ts";
import type { EventHub } from "../events/hub.ts";
import { forgetFingerprint } from "../queue/idempotency.ts";
import { findTask, findTaskFacts, lastSeq } from "../rows/tasks.ts";
import type { TaskSignals } from "../signals.ts";
import type { Task } from "../task.ts";
import { ALL_TEXTS, type ErasedTexts, eraseEvents } from "./erase-events.ts";
import { quotesIn } from "./recorded-quotes.ts";
import { erasedWith, eraseResponseEvents, forgetResponse } from "./stored-responses.ts";

export interface EraserParts {
  readonly signals: Pick<TaskSignals, "responsesErased">;
  readonly db: Db;
  readonly ledger: Ledger;
  readonly lists: LedgerLists;
  readonly histories: Pick<LedgerHistories, "of">;
  readonly running: Pick<RunningCalls, "requests">;
  readonly approvals: Pick<ApprovalEvidence, "prove">;
  readonly hub: EventHub;
  readonly forgetting: Forgetting;
}

type EraserReads = Pick<EraserParts, "db" | "lists">;

/** An entry whose texts are to be erased. */
interface Target extends ParsedEntry {
  readonly seq: number;
}

/** Erases prompts, outputs and arguments on request. */
export class PayloadEraser {
  readonly #parts: EraserParts;

  constructor(parts: EraserParts) {
    this.#parts = parts;
  }

  /**
   * Erases the texts of an entry or, for the intent that dispatched a task, all texts of the task, including those in
   * its stored events. Erasing the request of a response also erases all its answers, and erasing a text of a response
   * also erases its stored events. Each transaction that deletes texts records which ones; the last is recorded by the
   * call's own entry. A repeated call erases whatever is left, and succeeds if nothing is left.
   * @throws Problem 404 `not_found` if the entry does not exist or never had a text, 409 `task_unfinished`
   */
  async erase(call: Call, seq: number): Promise<void> {
    const { db, ledger, lists, approvals, hub, forgetting, signals } = this.#parts;
    const { workspaceId } = call.caller;
    call.about({ detail: { target_seq: seq } });
    const target = await this.#target(workspaceId, seq);
    if (target.task !== undefined) call.about({ task: target.task });
    const task = await this.#taskOf(workspaceId, target);
    const isWhole = task?.dispatchSeq === seq;
    const response = await erasedWith(this.#parts, workspaceId, target);
    const asked = task && !isWhole ? await argumentsOf({ db, lists, approvals }, task, seq) : null;
    const payloads = isWhole
      ? await payloadsOf({ db, lists }, task)
      : [...named(target), ...(asked?.others ?? []), ...(response?.payloads ?? [])];
    const admit = async (tx: Tx) => call.requireRights(tx);
    const isClients = target.action === "model.call" || target.action === "response.dispatch";
    const mayContinue = task ? await isContinued(db, task) : isClients;
    const quotes = mayContinue ? await quotesIn({ db, lists }, workspaceId, payloads) : [];
    if (task) {
      const texts = isWhole ? ALL_TEXTS : textsOf(target, asked);
      if (texts) await eraseEvents(db, task, texts, admit);
      hub.erased(task.id);
    }
    const others = Math.max(0, payloads.length - NAMED_AT_ONCE);
    const cause = { reason: "requested", target_seq: seq } as const;
    const draft = call.draft("succeeded");
    for (const detail of quotes.slice(1)) {
      await db.tx(workspaceId, async (tx) => {
        await admit(tx);
        await ledger.append(tx, workspaceId, { ...call.draft("pending"), detail });
      });
    }
    await erasePayloads({ db, ledger }, workspaceId, payloads.slice(0, others), draft, cause, admit);
    await call.commit(async (tx, record) => {
      const erased = await deletePayloads(tx, workspaceId, payloads.slice(others));
      if (isWhole) forgetFingerprint(tx, task);
      if (response?.id !== undefined) {
        if (response.isForgotten) await forgetResponse(tx, workspaceId, response.id, signals.responsesErased);
        else await eraseResponseEvents(tx, workspaceId, [response.id], signals.responsesErased);
      }
      await record({ detail: { ...erasureDetail(erased, cause), ...quotes[0] } });
    });
    forgetting.deleted();
    await forgetting.forget();
  }

  async #target(workspaceId: number, seq: number): Promise<Target> {
    const entry = await this.#parts.lists.entry(workspaceId, seq);
    if (!entry) throw new Problem("not_found", `There is no entry ${seq}.`);
    const target: Target = { ...parsedEntry(entry.bytes), seq };
    if (target.input_hash === undefined && target.output_hash === undefined) {
      throw new Problem("not_found", `Entry ${seq} never had a prompt, an output or arguments.`);
    }
    return target;
  }

  /** @throws Problem 409 `task_unfinished`: a run has the texts in memory and would write them again */
  async #taskOf(workspaceId: number, { task: id }: Target): Promise<Task | undefined> {
    const task = id === undefined ? undefined : await findTask(this.#parts.db, workspaceId, id);
    if (task && task.finishedAt === null) {
      throw new Problem("task_unfinished", `Task ${task.id} is ${task.status}. Cancel it first.`);
    }
    return task;
  }
}

/** Whether another task continues its conversation. */
async function isContinued(db: Db, { workspaceId, id }: Task): Promise<boolean> {
  const key = [workspaceId, id];
  const sql = "SELECT 1 AS found FROM tasks WHERE workspace_id = $1 AND continues = $2 LIMIT 1";
  return (await db.get<{ found: number }>(sql, key)) !== undefined;
}

function named({ seq, input_hash: input, output_hash: output }: Target): ErasedPayload[] {
  const payloads: ErasedPayload[] = [];
  if (input !== undefined) payloads.push({ seq, kind: "input" });
  if (output !== undefined) payloads.push({ seq, kind: "output" });
  return payloads;
}

/** The texts of an entry that also appear in a task's events. Events do not contain tool results. */
function textsOf({ action }: Target, call: CallArguments | null): ErasedTexts | null {
  if (action === "task.dispatch") {
    return { prompt: false, argumentsOf: new Set(), output: { afterCall: null } };
  }
  return call && { prompt: false, argumentsOf: new Set([call.id]), output: null };
}

/** The call whose arguments an entry shows, and where else they are stored. */
interface CallArguments {
  readonly id: string;
  /** The arguments that people were shown, that they substituted and that were sent. */
  readonly others: readonly ErasedPayload[];
}

/**
 * Null if the entry shows no call's arguments. The rows that locate other copies of the same arguments are compared
 * with the ledger first, so a forged row cannot erase anything in another person's name.
 * @throws LedgerChanged
 */
async function argumentsOf(
  { db, lists, approvals }: EraserReads & Pick<EraserParts, "approvals">,
  task: Task,
  seq: number,
): Promise<CallArguments | null> {
  const asked = await approvals.prove(await approvalsOf(db, task.workspaceId, task.id));
  const ids = new Set([...task.toolsCalled.map(({ id }) => id), ...asked.map(({ callId }) => callId)]);
  for (const id of ids) {
    const approval = asked.find(({ callId }) => callId === id);
    const shown = approval ? await presentationsOf(lists, approval) : [];
    const changes = approval ? await changesOf({ db, lists }, approval, shown) : [];
    const called = task.toolsCalled.find((call) => call.id === id);
    const seqs = [...shown, ...changes, ...(called ? [called.intentSeq] : [])];
    if (!seqs.includes(seq)) continue;
    if (called) await requireCallOf(lists, task, called.intentSeq);
    return {
      id,
      others: seqs.filter((other) => other !== seq).map((other) => ({ seq: other, kind: "input" as const })),
    };
  }
  return null;
}

/** @throws LedgerChanged if the entry named by the stored call is not a call of this task */
async function requireCallOf(
  lists: Pick<LedgerLists, "entry">,
  { workspaceId, id }: Task,
  seq: number,
): Promise<void> {
  const entry = await lists.entry(workspaceId, seq);
  const { action, task } = entry ? (JSON.parse(entry.bytes) as Partial<Target>) : {};
  if (action === "tool.call" && task === id) return;
  throw new LedgerChanged(`the entry ${seq} is not a call of ${id}, although the stored call names it`, seq);
}

/** All entries that have presented a call. */
async function presentationsOf(
  lists: Pick<LedgerLists, "read">,
  approval: Approval,
): Promise<readonly number[]> {
  const { workspaceId, callId, firstSeq, pendingSeq } = approval;
  const shown = new Set([firstSeq, pendingSeq]);
  if (shown.size === 1) return [...shown];
  const span = { first: firstSeq, last: pendingSeq, order: "asc" } as const;
  for await (const entries of lists.read(workspaceId, { action: "tool.call" }, span)) {
    for (const { seq, bytes } of entries) {
      const { outcome, detail } = parsedEntry(bytes);
      if (outcome === "pending" && detail?.call === callId) shown.add(seq);
    }
  }
  return [...shown];
}

/** All entries in which people substituted a call's arguments, including substitutions that were later replaced. */
async function changesOf(
  { db, lists }: EraserReads,
  { workspaceId, taskId, firstSeq, pendingSeq }: Approval,
  shown: readonly number[],
): Promise<number[]> {
  const task = await findTaskFacts(db, workspaceId, taskId);
  const last = task ? await lastSeq(db, task) : pendingSeq;
  const changes: number[] = [];
  const filter = { action: "oversight.approve" };
  for await (const entries of lists.read(workspaceId, filter, {
    first: firstSeq,
    last,
    order: "asc",
  })) {
    for (const { seq, bytes } of entries) {
      const { oversight, input_hash: input } = parsedEntry(bytes);
      if (input !== undefined && shown.includes(oversight?.target_seq ?? 0)) changes.push(seq);
    }
  }
  return changes;
}

/** Human decisions on a finished task's output, which may be recorded at any time after its end. */
async function overridesOf(
  { db, lists }: EraserReads,
  { workspaceId, id }: Task,
  after: number,
): Promise<ErasedPayload[]> {
  const found: ErasedPayload[] = [];
  const span = { first: after + 1, last: await ledgerSize(db, workspaceId), order: "asc" } as const;
  for (const action of ["oversight.override", "oversight.disregard"]) {
    for await (const entries of lists.read(workspaceId, { action }, span)) {
      for (const { seq, bytes } of entries) {
        const target: Target = { ...parsedEntry(bytes), seq };
        if (target.task === id) found.push(...named(target));
      }
    }
  }
  return found;
}

/** All remaining payloads of a finished task, in order. */
async function payloadsOf({ db, lists }: EraserReads, task: Task): Promise<ErasedPayload[]> {
  const { workspaceId, id, dispatchSeq } = task;
  const last = await lastSeq(db, task);
  const found: ErasedPayload[] = [];
  for (let after = dispatchSeq - 1; ; ) {
    const end = await endOfSlice(db, workspaceId, after, last);
    if (end === null) return [...found, ...(await overridesOf({ db, lists }, task, last))];
    const rows = await db.all<ErasedPayload & { readonly bytes: string }>(
      `SELECT p.seq, p.kind, l.bytes FROM payloads AS p
       JOIN ledger AS l ON l.workspace_id = p.workspace_id AND l.seq = p.seq
       WHERE p.workspace_id = $1 AND p.seq > $2 AND p.seq <= $3 ORDER BY p.seq, p.kind`,
      [workspaceId, after, end],
    );
    const own = rows.filter(({ bytes }) => parsedEntry(bytes).task === id);
    await requireSigned(lists, workspaceId, own);
    found.push(...own.map(({ seq, kind }) => ({ seq, kind })));
    after = end;
    const turn = takeWholeTurn(workspaceId);
    if (turn) await turn;
  }
}
