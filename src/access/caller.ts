import type { Grant } from "./grant.ts";

/** Which tools a token sees over MCP: all, or two with which it finds and calls the others. */
export type ToolsMode = "all" | "search";

/** An authenticated caller. Everything it may do follows from this. */
export interface Caller {
  readonly workspaceId: number;
  readonly workspace: string;
  /** `token:<id>`, `user:<name>`, `system` or `anonymous`. */
  readonly actor: string;
  /** The agent that the token acts as. */
  readonly agent: { readonly id: number; readonly name: string } | null;
  readonly scopes: readonly string[];
  /** How tools are listed to the caller over MCP. */
  readonly toolsMode: ToolsMode;
  /** The name of the token or of the operating system's user. Used if no person is named. */
  readonly name: string;
  /** The person who holds the token, and that person's role. */
  readonly person: string | null;
  readonly role: string | null;
  /** The browser's session, if the call uses one. Times are milliseconds since the Unix epoch. */
  readonly session?: { readonly id: string; readonly expiresAt: number };
  /** Checks whether the caller still has its rights. Absent for the operator on this machine, who always has them. */
  readonly grant?: Grant;
}

const TOKEN_ACTOR = "token:";

/** The id of the caller's token; null if it has none. */
export function tokenIdOf({ actor }: Pick<Caller, "actor">): string | null {
  return actor.startsWith(TOKEN_ACTOR) ? actor.slice(TOKEN_ACTOR.length) : null;
}
