import type { Log } from "../../../base/log.ts";
import type { Sql, Tx } from "../../../store/db.ts";
import type { StoredAnswer } from "../../dialect.ts";
import { field } from "../../json.ts";
import { finalResponse } from "./final-response.ts";

/** Maps a response's id to the entries that have its texts. */
export interface ResponseRow {
  readonly id: string;
  readonly agentId: number | null;
  /** As the configuration names it. */
  readonly model: string;
  /** Whether the model's provider knows the response by this id. */
  readonly isNative: boolean;
  readonly requestSeq: number;
  /** 0 until a background response has ended. */
  readonly outcomeSeq: number;
  /** Size in bytes of the whole conversation so far. */
  readonly bytes: number;
  /** Milliseconds since the Unix epoch. */
  readonly createdAt: number;
  /** How many times a background response has been started; null for other responses. */
  readonly attempts: number | null;
}

/** The form of the ids of responses and items. Providers choose their own. */
const ID = /^[A-Za-z0-9_-]{1,128}$/;
/** The maximum number of items of a response that requests may refer to. */
const MOST_ITEMS = 256;

/** Stores an answer that a client may refer to later. An existing id is never given to another response. */
export async function keepResponse(
  tx: Tx,
  { workspaceId, agentId, model, outcome, output }: StoredAnswer,
  {
    requestSeq,
    isNative,
    bytes,
    now,
    log,
  }: Pick<ResponseRow, "requestSeq" | "isNative" | "bytes"> & { now: number; log: Log },
): Promise<void> {
  const response = finalResponse(output);
  const id = field(response, "id");
  if (!isResponseId(id)) {
    const why = "a response is not stored: its answer has no complete response with an id";
    tx.onCommit(() => log.warn(why, { model, outcome }));
    return;
  }
  const kept = await tx.run(
    `INSERT INTO responses
       (workspace_id, id, agent_id, model, native, request_seq, outcome_seq, bytes, created_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING`,
    [
      workspaceId,
      id,
      agentId,
      model,
      isNative ? 1 : 0,
      requestSeq,
      outcome,
      bytes + Buffer.byteLength(JSON.stringify(field(response, "output") ?? [])),
      now,
    ],
  );
  if (kept === 0) {
    tx.onCommit(() => log.warn("a response is not stored: another one has its id", { model, outcome }));
    return;
  }
  keepItems(tx, workspaceId, id, response);
}

/** Stores the ids of the items in a response's output, so that requests can name them. */
function keepItems(tx: Tx, workspaceId: number, id: string, response: unknown): void {
  for (const item of itemIdsOf(response)) {
    tx.write(
      `INSERT INTO response_items (workspace_id, id, response_id) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
      [workspaceId, item, id],
    );
  }
}

/** The part of a background response's row that is stored before it ends. */
export type StoredDispatch = Pick<ResponseRow, "id" | "agentId" | "model" | "requestSeq" | "createdAt">;

/**
 * Stores a background response when it is dispatched, or when the server starts and finds it unfinished. Restores a
 * row that someone changed or deleted.
 */
export function storeDispatch(
  tx: Tx,
  workspaceId: number,
  { id, agentId, model, requestSeq, createdAt }: StoredDispatch,
): void {
  tx.write(
    `INSERT INTO responses
       (workspace_id, id, agent_id, model, native, request_seq, outcome_seq, bytes, created_at, attempts)
     VALUES ($1, $2, $3, $4, 0, $5, 0, 0, $6, 0) ON CONFLICT (workspace_id, id) DO UPDATE SET
       agent_id = excluded.agent_id, request_seq = excluded.request_seq, outcome_seq = 0,
       attempts = COALESCE(responses.attempts, 0)`,
    [workspaceId, id, agentId, model, requestSeq, createdAt],
  );
}

/**
 * Counts another attempt at a background response.
 * @returns the number of attempts, including this one
 */
export async function beginAttempt(tx: Tx, workspaceId: number, id: string): Promise<number> {
  const row = await tx.get<{ attempts: number }>(
    "UPDATE responses SET attempts = attempts + 1 WHERE workspace_id = $1 AND id = $2 RETURNING attempts",
    [workspaceId, id],
  );
  return row?.attempts ?? 1;
}

/** Reverts the count of an attempt that ended because the server was stopped. */
export function undoAttempt(tx: Tx, workspaceId: number, id: string): void {
  tx.write(
    "UPDATE responses SET attempts = attempts - 1 WHERE workspace_id = $1 AND id = $2 AND attempts > 0",
    [workspaceId, id],
  );
}

/** Stores the end of a background response. `outcomeSeq` is the entry with its answer or its failure. */
export function endDispatched(
  tx: Tx,
  workspaceId: number,
  { id, model, outcomeSeq, bytes }: Pick<ResponseRow, "id" | "outcomeSeq" | "bytes"> & { model?: string },
  response: unknown,
): void {
  tx.write(
    `UPDATE responses SET outcome_seq = $3, bytes = $4, model = COALESCE($5, model)
     WHERE workspace_id = $1 AND id = $2`,
    [workspaceId, id, outcomeSeq, bytes, model ?? null],
  );
  keepItems(tx, workspaceId, id, response);
}

export function isResponseId(id: unknown): id is string {
  return typeof id === "string" && ID.test(id);
}

function itemIdsOf(response: unknown): readonly string[] {
  const output = field(response, "output");
  if (!Array.isArray(output)) return [];
  const ids = output.slice(0, MOST_ITEMS).map((item) => field(item, "id"));
  return [...new Set(ids.filter(isResponseId))];
}

export async function findResponse(
  sql: Pick<Sql, "get">,
  workspaceId: number,
  id: string,
): Promise<ResponseRow | undefined> {
  const row = await sql.get<{
    agent_id: number | null;
    model: string;
    native: number;
    request_seq: number;
    outcome_seq: number;
    bytes: number;
    created_at: number;
    attempts: number | null;
  }>(
    `SELECT agent_id, model, native, request_seq, outcome_seq, bytes, created_at, attempts
     FROM responses WHERE workspace_id = $1 AND id = $2`,
    [workspaceId, id],
  );
  return (
    row && {
      ...{ id, agentId: row.agent_id, model: row.model, isNative: row.native === 1, bytes: row.bytes },
      ...{ requestSeq: row.request_seq, outcomeSeq: row.outcome_seq, createdAt: row.created_at },
      attempts: row.attempts,
    }
  );
}

/** The id of the response that made an item. */
export async function responseOfItem(
  sql: Pick<Sql, "get">,
  workspaceId: number,
  item: string,
): Promise<string | undefined> {
  const row = await sql.get<{ response_id: string }>(
    "SELECT response_id FROM response_items WHERE workspace_id = $1 AND id = $2",
    [workspaceId, item],
  );
  return row?.response_id;
}
