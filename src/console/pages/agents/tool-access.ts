import { matchesAny, restrictsTool } from "../../../base/glob.ts";
import type { Tool } from "../../../http/api.ts";

/** Patterns of the tools an agent may use, and of those that need approval; null: all destructive tools. */
export interface ToolPolicy {
  readonly tools: readonly string[];
  readonly approvals: readonly string[] | null;
}

/** A tool, and what the agent may do with it. */
export interface ToolAccess {
  readonly name: string;
  readonly isAllowed: boolean;
  readonly needsApproval: boolean;
  /** As marked by its connector. */
  readonly isDestructive: boolean;
}

/** The server's rule (`src/connectors/registry.ts`) applied to every tool, sorted by name. */
export function accessTo(tools: readonly Tool[], policy: ToolPolicy): readonly ToolAccess[] {
  return tools
    .map(({ name, destructive }) => ({
      name,
      isAllowed: matchesAny(policy.tools, name),
      needsApproval: policy.approvals === null ? destructive : restrictsTool(policy.approvals, name),
      isDestructive: destructive,
    }))
    .sort((one, other) => (one.name < other.name ? -1 : 1));
}

/** Patterns that match no name, often because of a typo. */
export function unmatched(patterns: readonly string[], names: readonly string[]): readonly string[] {
  return patterns.filter((pattern) => !names.some((name) => matchesAny([pattern], name)));
}
