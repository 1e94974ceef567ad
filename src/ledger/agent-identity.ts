import { idTime, idTimeOf } from "../base/ids.ts";
import type { ParsedEntry } from "./reading/parsed-entry.ts";

/** The action that creates an agent. Its request began before the agent existed. */
const MAKING = "agent.create";

/**
 * Whether an entry that names an agent is about the agent created at `since` (RFC 3339), not about an earlier agent
 * of the same name. Entries about an earlier agent may still be written after this one was created: the end of its
 * task or call, or a read or erasure of its entries. The ids of tasks and requests tell when they began.
 */
export function isAboutAgentSince(
  { ts, task, action, request_id: request }: ParsedEntry,
  since: string,
): boolean {
  if (ts === undefined || ts < since) return false;
  const from = idTimeOf(Date.parse(since));
  if (task !== undefined) return idTime(task) >= from;
  return action === MAKING || request === undefined || idTime(request) >= from;
}
