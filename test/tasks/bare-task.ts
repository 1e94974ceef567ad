import type { Db } from "../../src/store/db.ts";

let last = 0;

/** Inserts a task of workspace 1 as a row that nothing runs, with its agent. @returns its id */
export async function insertBareTask(
  db: Pick<Db, "run">,
  status: "running" | "succeeded",
  id = `task_${last + 1}`,
): Promise<string> {
  const dispatchSeq = ++last;
  await db.run(
    `INSERT INTO agents (id, workspace_id, name, owner, memory_scope, tier_policy, tools, max_steps, status, version,
       created_at, updated_at) VALUES (1, 1, 'a', 'o', '[]', '{}', '[]', 1, 'active', 1, 0, 0) ON CONFLICT DO NOTHING`,
  );
  await db.run(
    `INSERT INTO tasks (workspace_id, id, agent_id, agent, tier, tools, metadata, status, attempts, credits, input_tokens,
       output_tokens, steps, dispatch_seq, event_ceiling, created_by, created_at)
     VALUES (1, $1, 1, 'a', 1, '[]', '{}', $2, 1, 0, 0, 0, 0, $3, 0, 'x', 0)`,
    [id, status, dispatchSeq],
  );
  return id;
}
