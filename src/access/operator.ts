import type { Caller } from "./caller.ts";
import { hasScope } from "./scopes.ts";
import { DEFAULT_WORKSPACE } from "./workspaces.ts";

/** The prefix of the actor of the command line on this machine. */
const COMMAND_LINE = "user:";

/** Whether an actor of a caller or an entry is the command line on this machine. */
export function isCommandLine(actor: string): boolean {
  return actor.startsWith(COMMAND_LINE);
}

/**
 * Whether the caller operates the node: the command line on this machine, or an admin token of the workspace
 * `default`. A token that acts as an agent never does.
 */
export function isOperator({ actor, agent, workspace, scopes }: Caller): boolean {
  if (agent) return false;
  return isCommandLine(actor) || (workspace === DEFAULT_WORKSPACE && hasScope(scopes, "admin"));
}
