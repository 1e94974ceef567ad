import type { Tx } from "../../store/db.ts";
import { SESSIONS_PER_WORKSPACE, tooManySessions } from "../session-limits.ts";
import { countSessions, oldestSessions } from "./session-rows.ts";

/** Rows that are compared. The rows lag behind the memory of the nodes that serve the sessions. */
const CANDIDATES = 200;

/** What this node knows of sessions that it serves or has served. */
export interface LocalUses {
  /** Milliseconds since the Unix epoch, as all times here. */
  readonly now: number;
  /** When the session was last used here; infinite while it is in use; undefined if it is not served here. */
  usedAt(hash: string): number | undefined;
  /** Other nodes write the uses of their sessions this often. */
  readonly writeMs: number;
}

/**
 * Chooses the session that ends if a workspace opens one more: the one that has been idle the longest. A session that
 * another node has used recently may be in use.
 * @returns its hash; undefined if there is room
 * @throws Problem 429 `rate_limited` if all of them are in use
 */
export async function sessionToEnd(
  tx: Tx,
  workspaceId: number,
  { now, usedAt, writeMs }: LocalUses,
): Promise<string | undefined> {
  if ((await countSessions(tx, workspaceId)) < SESSIONS_PER_WORKSPACE) return undefined;
  let idlest: { readonly hash: string; readonly usedAt: number } | undefined;
  for (const row of await oldestSessions(tx, workspaceId, CANDIDATES)) {
    const local = usedAt(row.hash);
    if (local === undefined && row.usedAt > now - 2 * writeMs) continue;
    const last = Math.max(row.usedAt, local ?? 0);
    if (last < (idlest?.usedAt ?? Number.POSITIVE_INFINITY)) idlest = { hash: row.hash, usedAt: last };
  }
  if (!idlest) throw tooManySessions();
  return idlest.hash;
}
