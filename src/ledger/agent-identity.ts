import { idTime, idTimeOf } from "../base/ids.ts";
import type { ParsedEntry } from "./parsed-entry.ts";

/** What makes an agent, in the request of somebody who asked before it was there. */
const MAKING = "agent.create";

/**
 * Whether an entry that names an agent is about the agent which was made at `since` (RFC 3339), and not about an earlier one of its
 * name. Something may still be recorded of an earlier agent after this one was made: the end of its task or of its call, or that
 * somebody reads or erases them. Tasks and requests tell by their ids when they began.
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
