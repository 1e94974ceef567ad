import type { Sql, Tx } from "../../store/db.ts";

/** A stream that one node reads for its client, and another one sends. */
export interface Replay {
  readonly id: string;
  readonly workspaceId: number;
  /** The node whose client resumes the stream. */
  readonly reader: string;
}

/** What the sender has said so far. */
export interface ReplayState {
  /** The status of its answer; null before it has answered. */
  readonly status: number | null;
  readonly ended: number;
}

export async function insertReplay(sql: Sql, { id, workspaceId, reader }: Replay): Promise<void> {
  await sql.run("INSERT INTO mcp_replays (workspace_id, id, reader, ended) VALUES ($1, $2, $3, FALSE)", [
    workspaceId,
    id,
    reader,
  ]);
}

/** Undefined if the sender is gone, or the reader has left. */
export function replayState(sql: Sql, { workspaceId, id }: Pick<Replay, "workspaceId" | "id">) {
  return sql.get<ReplayState>("SELECT status, ended FROM mcp_replays WHERE workspace_id = $1 AND id = $2", [
    workspaceId,
    id,
  ]);
}

/** @returns false if the reader has left, or another node sends the stream */
export async function answerReplay(
  sql: Sql,
  { workspaceId, id }: Pick<Replay, "workspaceId" | "id">,
  sender: string,
  status: number,
): Promise<boolean> {
  const answer =
    "UPDATE mcp_replays SET sender = $3, status = $4 WHERE workspace_id = $1 AND id = $2 AND sender IS NULL";
  return (await sql.run(answer, [workspaceId, id, sender, status])) > 0;
}

export async function endReplay(
  sql: Sql,
  { workspaceId, id }: Pick<Replay, "workspaceId" | "id">,
): Promise<void> {
  await sql.run("UPDATE mcp_replays SET ended = TRUE WHERE workspace_id = $1 AND id = $2", [workspaceId, id]);
}

/** Also removes what was not read. */
export async function deleteReplay(
  sql: Sql,
  { workspaceId, id }: Pick<Replay, "workspaceId" | "id">,
): Promise<void> {
  await sql.run("DELETE FROM mcp_replays WHERE workspace_id = $1 AND id = $2", [workspaceId, id]);
}

/** @returns false if the reader has left */
export async function insertPart(
  sql: Sql,
  { workspaceId, id }: Pick<Replay, "workspaceId" | "id">,
  seq: number,
  frames: Uint8Array,
): Promise<boolean> {
  const insert = `INSERT INTO mcp_replay_parts (workspace_id, replay_id, seq, frames)
    SELECT workspace_id, id, $3::bigint, $4::bytea FROM mcp_replays WHERE workspace_id = $1 AND id = $2`;
  return (await sql.run(insert, [workspaceId, id, seq, frames])) > 0;
}

export async function countParts(
  sql: Sql,
  { workspaceId, id }: Pick<Replay, "workspaceId" | "id">,
): Promise<number> {
  const count = "SELECT count(*) AS count FROM mcp_replay_parts WHERE workspace_id = $1 AND replay_id = $2";
  return (await sql.get<{ count: number }>(count, [workspaceId, id]))?.count ?? 0;
}

/** Takes the next parts, in order. */
export async function takeParts(
  tx: Tx,
  { workspaceId, id }: Pick<Replay, "workspaceId" | "id">,
  limit: number,
): Promise<Uint8Array[]> {
  const parts = await tx.all<{ seq: number; frames: Uint8Array }>(
    `DELETE FROM mcp_replay_parts WHERE workspace_id = $1 AND replay_id = $2 AND seq IN (
       SELECT seq FROM mcp_replay_parts WHERE workspace_id = $1 AND replay_id = $2 ORDER BY seq LIMIT $3)
     RETURNING seq, frames`,
    [workspaceId, id, limit],
  );
  return parts.sort((one, other) => one.seq - other.seq).map(({ frames }) => frames);
}
