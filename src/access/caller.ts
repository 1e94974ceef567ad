import type { Grant } from "./grant.ts";

/** All of them, or two with which to find and to call the others. */
export type ToolsMode = "all" | "search";

/** Who makes a call, once authenticated. Everything it may do follows from here. */
export interface Caller {
  readonly workspaceId: number;
  readonly workspace: string;
  /** `token:<id>`, `user:<name>`, `system` or `anonymous`. */
  readonly actor: string;
  /** The agent that the token acts as. */
  readonly agent: { readonly id: number; readonly name: string } | null;
  readonly scopes: readonly string[];
  /** How it is shown its tools over MCP. */
  readonly toolsMode: ToolsMode;
  /** The token's name, or the operating system user's: stands for the person where none is named. */
  readonly name: string;
  /** The human who holds the token, and in what capacity. */
  readonly person: string | null;
  readonly role: string | null;
  /** The session of the browser that makes the call, where it does so by one. Times are milliseconds since the Unix epoch. */
  readonly session?: { readonly id: string; readonly expiresAt: number };
  /** By which it is asked again whether the caller may still act. Without one it may: the operator on this machine. */
  readonly grant?: Grant;
}

const TOKEN_ACTOR = "token:";

/** The id of the token that the caller has; null for one that has none. */
export function tokenIdOf({ actor }: Pick<Caller, "actor">): string | null {
  return actor.startsWith(TOKEN_ACTOR) ? actor.slice(TOKEN_ACTOR.length) : null;
}
