import { join } from "node:path";
import { systemClock } from "../../../src/base/clock.ts";
import { systemRandom } from "../../../src/base/ids.ts";
import { silentLog } from "../../../src/base/log.ts";
import { nodeHeadStore } from "../../../src/ledger/heads/open-node-heads.ts";
import { SigningKeyFile } from "../../../src/ledger/keys/file.ts";
import { openChains } from "../../../src/ledger/open-chains.ts";
import { openSqlite } from "../../../src/store/sqlite/open.ts";

/**
 * Presents a waiting call, with the ledger's own key, as earlier versions did: their entries named neither the call,
 * nor the tool's definition, nor how many approvals are needed.
 * @param approvedBy the person who approved it in that version
 */
export async function presentAsEarlier(
  dataDir: string,
  { task, call_id: callId }: { readonly task: string; readonly call_id: string },
  approvedBy?: string,
): Promise<void> {
  const db = openSqlite(join(dataDir, "gatehouse.db"));
  const workspaces = await db.all<{ id: number; name: string }>("SELECT id, name FROM workspaces");
  const { ledger } = await openChains({
    ...{
      db,
      headStore: nodeHeadStore,
      keyStore: new SigningKeyFile(dataDir),
      clock: systemClock,
      random: systemRandom,
      log: silentLog,
    },
    workspaces: () => workspaces,
    nameOf: (id) => workspaces.find((workspace) => workspace.id === id)?.name ?? "",
  });
  const workspaceId = workspaces.find(({ name }) => name === "default")?.id ?? 0;
  await db.tx(1, async (tx) => {
    const about = { phase: "single", channel: "system", actor: "system", agent: "careful", task } as const;
    const seq = await ledger.append(tx, workspaceId, {
      ...{ ...about, action: "tool.call", outcome: "pending", code: "approval_required", tool: "up.send" },
      input: '{"to":"all"}',
    });
    const key = [workspaceId, task, callId];
    await tx.run(
      `UPDATE approvals SET pending_seq = $4, arguments_seq = $4, definition_hash = NULL, arguments_hash =
         (SELECT bytes->>'input_hash' FROM ledger WHERE workspace_id = $1 AND seq = $4)
       WHERE workspace_id = $1 AND task_id = $2 AND call_id = $3`,
      [...key, seq],
    );
    if (approvedBy === undefined) return;
    const row = await tx.get<{ hash: string }>(
      "SELECT arguments_hash AS hash FROM approvals WHERE workspace_id = $1 AND task_id = $2 AND call_id = $3",
      key,
    );
    const decided = await ledger.append(tx, workspaceId, {
      ...{ ...about, action: "oversight.approve", outcome: "succeeded", tool: "up.send" },
      oversight: {
        ...{ person: approvedBy, decision: "approve", decided_at: new Date().toISOString() },
        ...{ target_seq: seq, arguments_hash: row?.hash ?? "" },
      },
    });
    await tx.run("INSERT INTO approval_votes VALUES ($1, $2, $3, $4, $5)", [
      ...key,
      approvedBy.toLowerCase(),
      decided,
    ]);
    await tx.run(
      `UPDATE approvals SET status = 'approved', decision_seq = $4
       WHERE workspace_id = $1 AND task_id = $2 AND call_id = $3`,
      [...key, decided],
    );
    await tx.run("UPDATE tasks SET status = 'queued' WHERE workspace_id = $1 AND id = $2", [
      workspaceId,
      task,
    ]);
  });
  await db.close();
}
