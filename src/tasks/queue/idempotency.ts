import type { Caller } from "../../access/caller.ts";
import { Problem } from "../../base/errors.ts";
import { canonicalJson } from "../../base/json.ts";
import type { Db, Sql, Tx } from "../../store/db.ts";
import type { Task } from "../task.ts";

const KEPT_MS = 24 * 3_600_000;
const PURGE_LIMIT = 1_000;

/** A caller's key for one request. Keys of different callers are independent. */
export interface IdempotencyKey {
  readonly workspaceId: number;
  readonly actor: string;
  readonly key: string;
  /** SHA-256 of the body with its keys sorted. */
  readonly fingerprint: Uint8Array;
}

export function keyOf({ workspaceId, actor }: Caller, key: string, body: object): IdempotencyKey {
  const fingerprint = new Bun.CryptoHasher("sha256").update(canonicalJson(body)).digest();
  return { workspaceId, actor, key, fingerprint };
}

/**
 * The task that this key created in the last 24 hours, if any.
 * @throws Problem 409 `idempotency_conflict` if the key was used for another body
 */
export async function findReplay(
  sql: Pick<Sql, "get">,
  key: IdempotencyKey,
  now: number,
): Promise<string | undefined> {
  const row = await sql.get<{ fingerprint: Uint8Array; task_id: string }>(
    `SELECT fingerprint, task_id FROM idempotency_keys
     WHERE workspace_id = $1 AND actor = $2 AND key = $3 AND created_at > $4`,
    [key.workspaceId, key.actor, key.key, now - KEPT_MS],
  );
  if (!row) return undefined;
  if (Buffer.compare(row.fingerprint, key.fingerprint) !== 0) {
    throw new Problem(
      "idempotency_conflict",
      "This Idempotency-Key was used with a different body in the last 24 hours. Use a new key.",
    );
  }
  return row.task_id;
}

/** Stores the key for a task. MUST follow `findReplay` in the same transaction. */
export function keepKey(tx: Tx, key: IdempotencyKey, taskId: string, now: number): void {
  tx.write(
    `INSERT INTO idempotency_keys (workspace_id, actor, key, fingerprint, task_id, created_at)
     VALUES ($1, $2, $3, $4, $5, $6)
     ON CONFLICT (workspace_id, actor, key) DO UPDATE
     SET fingerprint = excluded.fingerprint, task_id = excluded.task_id, created_at = excluded.created_at`,
    [key.workspaceId, key.actor, key.key, key.fingerprint, taskId, now],
  );
}

/**
 * Erases the hash of a task's request: it has no salt, so a guessed prompt could be confirmed with it. The key still
 * belongs to its task, so that no request is executed twice; from now on it is refused with any body.
 */
export function forgetFingerprint(
  tx: Tx,
  { workspaceId, id, createdAt }: Pick<Task, "workspaceId" | "id" | "createdAt">,
): void {
  tx.write(
    "UPDATE idempotency_keys SET fingerprint = $4 WHERE created_at = $1 AND workspace_id = $2 AND task_id = $3",
    [createdAt, workspaceId, id, new Uint8Array(0)],
  );
}

/** Removes some expired keys, whichever workspaces they belong to: only their age matters. */
export async function purgeKeys(db: Db, now: number): Promise<void> {
  await db.run(
    `DELETE FROM idempotency_keys WHERE (workspace_id, actor, key) IN (
       SELECT workspace_id, actor, key FROM idempotency_keys WHERE created_at <= $1 LIMIT $2)`,
    [now - KEPT_MS, PURGE_LIMIT],
  );
}
