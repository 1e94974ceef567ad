import { mayUseTool } from "../access/scopes.ts";
import type { Tool } from "../agents/index.ts";
import { Problem } from "../base/errors.ts";
import { matchesAny } from "../base/glob.ts";

/** On whose behalf a tool acts. */
export interface ToolActor {
  readonly workspaceId: number;
  readonly agentId: number;
  /** As the ledger names who asked for it. */
  readonly actor: string;
}

/** A tool that is always there. It may do more for one actor than for another, so that it is made for each. */
export interface BuiltinTool {
  /** `<connector>.<tool>` */
  readonly name: string;
  make(actor: ToolActor): Tool;
}

/** Whose rights a tool is used with: the agent's, narrowed by the token's. */
export interface ToolUser {
  /** Globs of the agent. */
  readonly tools: readonly string[];
  /** Scopes of the token. */
  readonly scopes: readonly string[];
}

/** Every tool that a workspace's connectors offer, `<connector>.<tool>`. */
export interface ToolRegistry {
  /** @throws Problem 422 `unknown_tool`, 403 `tool_forbidden` */
  check(names: readonly string[], user: ToolUser): void;
  /**
   * The tools of these names, in order, to act for `actor`.
   * @throws Problem as `check` does
   */
  resolve(names: readonly string[], user: ToolUser, actor: ToolActor): readonly Tool[];
}

export function createToolRegistry(builtin: readonly BuiltinTool[]): ToolRegistry {
  const tools = new Map(builtin.map((tool) => [tool.name, tool]));

  function find(names: readonly string[], user: ToolUser): BuiltinTool[] {
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
  }

  return {
    check: (names, user) => void find(names, user),
    resolve: (names, user, actor) => find(names, user).map((tool) => tool.make(actor)),
  };
}
