import { personKey } from "../../base/person-key.ts";
import type { Tx } from "../../store/db.ts";
import type { Approval } from "./rows.ts";

/** One person's approval, as stored. */
export interface Vote {
  /** The person's name, normalised by `personKey`. */
  readonly person: string;
  /** Seq of the decision's entry. */
  readonly seq: number;
}

/** SQL for the votes on the approval `a`, for `readVotes`. A person's key contains no line break. */
export const VOTES = `(SELECT string_agg(v.seq || ' ' || v.person, '\n') FROM approval_votes v
  WHERE v.workspace_id = a.workspace_id AND v.task_id = a.task_id AND v.call_id = a.call_id)`;

/** Returns the votes, earliest first. */
export function readVotes(text: string | null): Vote[] {
  if (text === null) return [];
  const votes = text.split("\n").map((line): Vote => {
    const space = line.indexOf(" ");
    return { seq: Number(line.slice(0, space)), person: line.slice(space + 1) };
  });
  return votes.sort((a, b) => a.seq - b.seq);
}

/** @returns how many people have approved so far; null if this person already had */
export async function addVote(
  tx: Tx,
  { workspaceId, taskId, callId }: Approval,
  person: string,
  seq: number,
): Promise<number | null> {
  const key = [workspaceId, taskId, callId];
  const added = await tx.run(
    `INSERT INTO approval_votes (workspace_id, task_id, call_id, person, seq) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT DO NOTHING`,
    [...key, personKey(person), seq],
  );
  if (added === 0) return null;
  const row = await tx.get<{ votes: number }>(
    "SELECT COUNT(*) AS votes FROM approval_votes WHERE workspace_id = $1 AND task_id = $2 AND call_id = $3",
    key,
  );
  return row?.votes ?? 0;
}
