import type { Clock } from "../base/clock.ts";
import { Problem } from "../base/errors.ts";
import type { Sql } from "../store/db.ts";
import { type Caller, tokenIdOf } from "./caller.ts";
import { hashSecret } from "./secret.ts";
import type { Sessions } from "./sessions.ts";

export interface ValidUntilParts {
  readonly sql: Sql;
  readonly sessions: Pick<Sessions, "get">;
  readonly clock: Pick<Clock, "now">;
}

/**
 * The time until which a caller's session, or the token secret that it used, remains valid, in milliseconds since the
 * Unix epoch. Infinite without an end, and for the operator, who has neither. Undefined if the caller would no longer
 * be admitted. Does not count as a use.
 */
export async function validUntil(
  { sql, sessions, clock }: ValidUntilParts,
  caller: Caller,
  secret: string | null,
): Promise<number | undefined> {
  const { workspaceId, session } = caller;
  if (session) return sessionUntil(sessions, workspaceId, session.id);
  const id = tokenIdOf(caller);
  if (secret === null || id === null) return Number.POSITIVE_INFINITY;
  const row = await sql.get<{ expires_at: number | null; secret_until: number | null }>(
    `SELECT t.expires_at, CASE WHEN t.secret_hash = $3 THEN NULL ELSE t.previous_until END AS secret_until
     FROM tokens t LEFT JOIN agents a ON a.id = t.agent_id
     WHERE t.workspace_id = $1 AND t.id = $2 AND (t.secret_hash = $3 OR t.previous_hash = $3)
       AND t.revoked_at IS NULL AND a.archived_at IS NULL`,
    [workspaceId, id, hashSecret(secret)],
  );
  if (!row) return undefined;
  const until = Math.min(
    row.expires_at ?? Number.POSITIVE_INFINITY,
    row.secret_until ?? Number.POSITIVE_INFINITY,
  );
  return clock.now() < until ? until : undefined;
}

async function sessionUntil(
  sessions: Pick<Sessions, "get">,
  workspaceId: number,
  id: string,
): Promise<number | undefined> {
  try {
    return (await sessions.get(workspaceId, id)).expiresAt;
  } catch (error) {
    if (error instanceof Problem && error.code === "not_found") return undefined;
    throw error;
  }
}
