import type { Tx } from "../store/db.ts";
import type { LimitKind, NoticeClaims, NoticeFacts } from "./notices.ts";

interface NoticeRow {
  readonly minute: number;
  readonly named: LimitKind;
  readonly also: LimitKind | null;
  readonly uncounted: number;
}

const READ = "SELECT minute, named, also, uncounted FROM limit_notices WHERE workspace_id = $1";
const CLAIM = `INSERT INTO limit_notices (workspace_id, minute, named, also, uncounted) VALUES ($1, $2, $3, NULL, 0)
  ON CONFLICT (workspace_id) DO UPDATE
    SET minute = excluded.minute, named = excluded.named, also = NULL, uncounted = 0`;
const LEAVE = `UPDATE limit_notices SET uncounted = uncounted + $2, also = CASE WHEN named = $3 THEN also ELSE $3 END
  WHERE workspace_id = $1`;

/**
 * One row for each workspace: the first node in a minute writes the notice, and the others leave in the row what the next
 * notice is to report. In transactions of the workspace, which take turns.
 */
export const sharedNoticeClaims: NoticeClaims = {
  async claim(tx: Tx, workspaceId: number, minute: number, { limit, before, also }: NoticeFacts) {
    const row = await tx.get<NoticeRow>(READ, [workspaceId]);
    if (row && row.minute >= minute) {
      tx.write(LEAVE, [workspaceId, before + 1, limit]);
      return { isFirst: false, named: row.named };
    }
    tx.write(CLAIM, [workspaceId, minute, limit]);
    const left = row?.also === limit ? undefined : (row?.also ?? undefined);
    return { isFirst: true, before: before + (row?.uncounted ?? 0), also: also ?? left };
  },
};
