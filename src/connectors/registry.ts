import { mayUseTool } from "../access/scopes.ts";
import type { Tool } from "../agents/index.ts";
import { Problem } from "../base/errors.ts";
import { matchesAny } from "../base/glob.ts";

/** Whose rights a tool is used with: the agent's, narrowed by the token's. */
export interface ToolUser {
  /** Globs of the agent. */
  readonly tools: readonly string[];
  /** Scopes of the token. */
  readonly scopes: readonly string[];
}

/** Every tool that a workspace's connectors offer, `<connector>.<tool>`. */
export interface ToolRegistry {
  /**
   * The tools of these names, in order.
   * @throws Problem 422 `unknown_tool`, 403 `tool_forbidden`
   */
  resolve(names: readonly string[], user: ToolUser): readonly Tool[];
}

export function createToolRegistry(builtin: readonly Tool[]): ToolRegistry {
  const tools = new Map(builtin.map((tool) => [tool.name, tool]));
  return {
    resolve(names, user) {
      // All names first: which refusal comes does not hang on the order in which tools are listed.
      const found = names.map((name, index) => {
        const tool = tools.get(name);
        if (tool) return tool;
        throw new Problem("unknown_tool", `There is no tool named ${JSON.stringify(name)}.`, {
          errors: [{ path: `/tools/${index}`, message: "is not a tool of this workspace" }],
        });
      });
      for (const name of names) {
        if (!matchesAny(user.tools, name)) {
          throw new Problem("tool_forbidden", `The agent may not use ${name}.`);
        }
        if (!mayUseTool(user.scopes, name)) {
          throw new Problem("tool_forbidden", `The token's scopes do not include tools:${name}.`);
        }
      }
      return found;
    },
  };
}
