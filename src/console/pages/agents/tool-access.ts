import { matchesAny, restrictsTool } from "../../../base/glob.ts";
import type { Tool } from "../../../http/api.ts";

/** Of an agent: globs of the tools that it may use, and of those that need approval; null: all that are destructive. */
export interface ToolPolicy {
  readonly tools: readonly string[];
  readonly approvals: readonly string[] | null;
}

/** A tool as an agent stands to it. */
export interface ToolAccess {
  readonly name: string;
  readonly isAllowed: boolean;
  readonly needsApproval: boolean;
  /** As its connector marks it. */
  readonly isDestructive: boolean;
}

/** The server's rule (`src/connectors/registry.ts`) for every tool, by name. */
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

/** Patterns that match none of the names: often mistyped. */
export function unmatched(patterns: readonly string[], names: readonly string[]): readonly string[] {
  return patterns.filter((pattern) => !names.some((name) => matchesAny([pattern], name)));
}
