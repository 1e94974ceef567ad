import { Problem } from "../../base/errors.ts";
import type { Signal } from "../../base/signal.ts";
import type { LedgerHistories } from "../../gate/ledger-histories.ts";
import type { ErasedPayload } from "../../ledger/proof/erasure.ts";
import type { Db, Sql, Tx } from "../../store/db.ts";
import type { ErasedResponses, TaskSignals } from "../signals.ts";
import {
  type AnswerParts,
  answersTo,
  backgroundIdOf,
  backgroundIdsOf,
  type RequestEntry,
} from "./client-requests.ts";
import { deleteEventsOf, eraseEventsOf } from "./response-events.ts";

/** What is erased together with an entry of a response. */
export interface ErasedResponse {
  /** Undefined if it is not stored. */
  readonly id: string | undefined;
  /** The answers, if the entry is the request. */
  readonly payloads: readonly ErasedPayload[];
  /** Whether it can no longer be found. Otherwise, only its events are erased. */
  readonly isForgotten: boolean;
}

/**
 * The response that an entry belongs to, or null. The ledger decides what belongs to it: its row only shows its id.
 * @throws Problem 409 `task_unfinished` if a text of the response may still be recorded
 */
export async function erasedWith(
  parts: AnswerParts & { readonly db: Pick<Sql, "get"> },
  workspaceId: number,
  target: RequestEntry,
): Promise<ErasedResponse | null> {
  const { action, phase, task, detail, seq } = target;
  const isClients = action === "model.call" || action === "response.dispatch";
  if (!isClients || task !== undefined || detail?.dialect !== "responses") return null;
  const id = backgroundIdOf(target);
  if (phase === "intent") {
    const payloads = await answersTo(parts, workspaceId, target);
    return { id: id ?? (await storedId(parts.db, workspaceId, "request", seq)), payloads, isForgotten: true };
  }
  if (id !== undefined) await requireEnded(parts, workspaceId, id);
  const answered = await storedId(parts.db, workspaceId, "outcome", seq);
  const isForgotten = answered !== undefined && (id === undefined || id === answered);
  return { id: id ?? answered, payloads: [], isForgotten };
}

async function storedId(
  db: Pick<Sql, "get">,
  workspaceId: number,
  column: "request" | "outcome",
  seq: number,
): Promise<string | undefined> {
  const row = await db.get<{ id: string }>(
    `SELECT id FROM responses WHERE workspace_id = $1 AND ${column}_seq = $2`,
    [workspaceId, seq],
  );
  return row?.id;
}

/** @throws Problem 409 `task_unfinished`: its events may repeat texts of an earlier attempt */
async function requireEnded(
  { lists, histories }: Pick<AnswerParts, "lists" | "histories">,
  workspaceId: number,
  id: string,
): Promise<void> {
  const open = await backgroundIdsOf(lists, workspaceId, [...histories.of(workspaceId).openResponses]);
  if (open.has(id))
    throw new Problem("task_unfinished", `The response ${id} has not ended. Cancel it first.`);
}

interface EventParts extends Pick<AnswerParts, "lists"> {
  readonly db: Pick<Db, "tx">;
  readonly signals: Pick<TaskSignals, "responsesErased">;
}

/** Notified of the responses whose texts were erased, so that no open stream sends them. */
export type TellErased = Pick<Signal<ErasedResponses>, "emit">;

/** Makes the response impossible to find. Its texts are left to the caller. */
export async function forgetResponse(
  tx: Tx,
  workspaceId: number,
  id: string,
  erased: TellErased,
): Promise<void> {
  const key = [workspaceId, id];
  tx.write("DELETE FROM response_items WHERE workspace_id = $1 AND response_id = $2", key);
  await deleteEventsOf(tx, workspaceId, [id]);
  tx.write("DELETE FROM responses WHERE workspace_id = $1 AND id = $2", key);
  tx.onCommit(() => erased.emit({ workspaceId, ids: [id] }));
}

/** Like `forgetResponse`, for all responses whose request is in an entry up to `upTo`. */
export function forgetResponsesUpTo(tx: Tx, workspaceId: number, upTo: number, erased: TellErased): void {
  const span = [workspaceId, upTo];
  for (const table of ["response_items", "response_events"]) {
    tx.write(
      `DELETE FROM ${table} WHERE workspace_id = $1 AND response_id IN
         (SELECT id FROM responses WHERE workspace_id = $1 AND request_seq <= $2)`,
      span,
    );
  }
  tx.write("DELETE FROM responses WHERE workspace_id = $1 AND request_seq <= $2", span);
  tx.onCommit(() => erased.emit({ workspaceId, upTo }));
}

/** Erases the stored events of background responses. */
export async function eraseResponseEvents(
  tx: Tx,
  workspaceId: number,
  ids: Iterable<string>,
  erased: TellErased,
): Promise<void> {
  const all = [...ids];
  for (const id of all) await eraseEventsOf(tx, workspaceId, id);
  tx.onCommit(() => erased.emit({ workspaceId, ids: all }));
}

/** Erases the stored events of the background responses that some texts belong to. */
export async function eraseEventsWith(
  { db, lists, signals }: EventParts,
  workspaceId: number,
  texts: readonly ErasedPayload[],
): Promise<void> {
  const ids = await backgroundIdsOf(
    lists,
    workspaceId,
    texts.map(({ seq }) => seq),
  );
  // One by one: the events of a response may have megabytes, and others wait for each transaction.
  for (const id of ids) {
    await db.tx(null, (tx) => eraseResponseEvents(tx, workspaceId, [id], signals.responsesErased), {
      turnOf: workspaceId,
    });
  }
}

/**
 * The seq of the request of the oldest unfinished background response; infinite if there is none. The rows are not
 * used: anyone who changed one could prevent all erasure.
 */
export function firstOpenResponse(histories: Pick<LedgerHistories, "of">, workspaceId: number): number {
  let first = Number.POSITIVE_INFINITY;
  for (const seq of histories.of(workspaceId).openResponses) first = Math.min(first, seq);
  return first;
}
