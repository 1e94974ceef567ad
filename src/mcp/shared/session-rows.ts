import type { Sql, Tx } from "../../store/db.ts";

/** Identifies a session's row. The id itself, which is a secret, is not stored. */
export interface SessionKey {
  readonly workspaceId: number;
  readonly hash: string;
}

export interface SessionRow extends SessionKey {
  readonly actor: string;
  readonly toldTools: string;
  /** Milliseconds since the Unix epoch. */
  readonly usedAt: number;
}

/** What a node knows of a session that it serves. */
export interface SessionUse extends SessionKey {
  readonly usedAt: number;
  readonly hadStream: boolean;
  /** Null if the node has not notified the client. */
  readonly toldTools: string | null;
}

/** Sessions whose last use was before these moments have expired. */
export interface SessionAges {
  readonly idle: number;
  /** For sessions that had a stream. */
  readonly lost: number;
}

export async function countSessions(sql: Sql, workspaceId: number): Promise<number> {
  const count = "SELECT count(*) AS count FROM mcp_sessions WHERE workspace_id = $1";
  return (await sql.get<{ count: number }>(count, [workspaceId]))?.count ?? 0;
}

export function insertSession(tx: Tx, { workspaceId, hash, actor, toldTools, usedAt }: SessionRow): void {
  tx.write(
    `INSERT INTO mcp_sessions (workspace_id, id_hash, actor, told_tools, used_at, had_stream)
     VALUES ($1, $2, $3, $4, $5, FALSE)`,
    [workspaceId, hash, actor, toldTools, usedAt],
  );
}

/** The session of this token, unless it has expired. */
export async function findSession(
  sql: Sql,
  { workspaceId, hash, actor }: Pick<SessionRow, "workspaceId" | "hash" | "actor">,
  { idle, lost }: SessionAges,
): Promise<Pick<SessionRow, "toldTools"> | undefined> {
  return sql.get<Pick<SessionRow, "toldTools">>(
    `SELECT told_tools AS "toldTools" FROM mcp_sessions
     WHERE workspace_id = $1 AND id_hash = $2 AND actor = $3
       AND used_at > CASE WHEN had_stream THEN $5::bigint ELSE $4::bigint END`,
    [workspaceId, hash, actor, idle, lost],
  );
}

/** A workspace's sessions, the one that has been unused the longest first. */
export function oldestSessions(
  sql: Sql,
  workspaceId: number,
  limit: number,
): Promise<Pick<SessionRow, "hash" | "usedAt">[]> {
  return sql.all(
    `SELECT id_hash AS hash, used_at AS "usedAt" FROM mcp_sessions WHERE workspace_id = $1
     ORDER BY used_at LIMIT $2`,
    [workspaceId, limit],
  );
}

/** Writes what a node knows of its sessions. @returns the hashes of those that still exist */
export async function updateSessions(sql: Sql, uses: readonly SessionUse[]): Promise<Set<string>> {
  const rows = await sql.all<Pick<SessionRow, "hash">>(
    `UPDATE mcp_sessions AS kept
     SET used_at = GREATEST(kept.used_at, used.used_at),
       had_stream = kept.had_stream OR used.had_stream,
       told_tools = CASE WHEN used.told_tools = '' THEN kept.told_tools ELSE used.told_tools END
     FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::boolean[], $5::text[])
       AS used (workspace_id, id_hash, used_at, had_stream, told_tools)
     WHERE kept.workspace_id = used.workspace_id AND kept.id_hash = used.id_hash
     RETURNING kept.id_hash AS hash`,
    [
      list(uses.map(({ workspaceId }) => workspaceId)),
      list(uses.map(({ hash }) => hash)),
      list(uses.map(({ usedAt }) => usedAt)),
      list(uses.map(({ hadStream }) => hadStream)),
      list(uses.map(({ toldTools }) => `"${toldTools ?? ""}"`)),
    ],
  );
  return new Set(rows.map(({ hash }) => hash));
}

/** The hashes of those sessions that exist. */
export async function existingSessions(sql: Sql, keys: readonly SessionKey[]): Promise<Set<string>> {
  const rows = await sql.all<Pick<SessionRow, "hash">>(
    `SELECT kept.id_hash AS hash FROM mcp_sessions AS kept
     JOIN unnest($1::bigint[], $2::text[]) AS asked (workspace_id, id_hash)
       ON kept.workspace_id = asked.workspace_id AND kept.id_hash = asked.id_hash`,
    [list(keys.map(({ workspaceId }) => workspaceId)), list(keys.map(({ hash }) => hash))],
  );
  return new Set(rows.map(({ hash }) => hash));
}

export async function deleteSessions(sql: Sql, keys: readonly SessionKey[]): Promise<void> {
  await sql.run(
    `DELETE FROM mcp_sessions AS kept USING unnest($1::bigint[], $2::text[]) AS ended (workspace_id, id_hash)
     WHERE kept.workspace_id = ended.workspace_id AND kept.id_hash = ended.id_hash`,
    [list(keys.map(({ workspaceId }) => workspaceId)), list(keys.map(({ hash }) => hash))],
  );
}

export async function purgeSessions(sql: Sql, { idle, lost }: SessionAges): Promise<void> {
  await sql.run(
    `DELETE FROM mcp_sessions
     WHERE (NOT had_stream AND used_at <= $1) OR (had_stream AND used_at <= $2)`,
    [idle, lost],
  );
}

/** An array of values that need no quotes, or have them. */
function list(values: readonly (string | number | boolean)[]): string {
  return `{${values.join(",")}}`;
}
