import { covers, grantCost, matchesAny } from "../base/glob.ts";

/** What a token may do (contract, section 2). `tools:<glob>` and `admin` exist as well. */
export const NAMED_SCOPES = [
  "agents:read",
  "agents:write",
  "tasks:read",
  "tasks:write",
  "vault:read",
  "vault:write",
  "connectors:read",
  "connectors:write",
  "ledger:read",
  "approvals:write",
  "tokens:write",
  "settings:write",
  "models:call",
] as const;

export type NamedScope = (typeof NAMED_SCOPES)[number];

const ADMIN = "admin";
const TOOLS = "tools:";
const TOOLS_FORM = /^tools:[A-Za-z0-9_.*?-]{1,200}$/;

/** The scopes of a token that acts as an agent and has no list of its own. */
export const AGENT_TOKEN_SCOPES: readonly string[] = [
  "tasks:read",
  "tasks:write",
  "vault:read",
  "connectors:read",
  "models:call",
  "tools:*",
];

export const ADMIN_SCOPES: readonly string[] = [ADMIN];

export function isScope(text: string): boolean {
  return text === ADMIN || TOOLS_FORM.test(text) || (NAMED_SCOPES as readonly string[]).includes(text);
}

export function hasScope(scopes: readonly string[], needed: NamedScope | typeof ADMIN): boolean {
  return scopes.includes(needed) || scopes.includes(ADMIN);
}

export function mayUseTool(scopes: readonly string[], tool: string): boolean {
  return scopes.includes(ADMIN) || matchesAny(toolGlobs(scopes), tool);
}

/** How long `mayUseTool` takes for one tool, in bytes that are measured in the same time (see `Arrival`). */
export function toolScopeCost(scopes: readonly string[]): number {
  return grantCost(toolGlobs(scopes));
}

/** The first of `wanted` that `held` does not include: callers can only grant scopes that they have. */
export function firstNotHeld(held: readonly string[], wanted: readonly string[]): string | undefined {
  if (held.includes(ADMIN)) return undefined;
  const globs = toolGlobs(held);
  return wanted.find((scope) =>
    scope.startsWith(TOOLS) ? !covers(globs, scope.slice(TOOLS.length)) : !held.includes(scope),
  );
}

const globsOfScopes = new WeakMap<readonly string[], readonly string[]>();

/** The same list for the same scopes, because lists of globs are compiled once. */
function toolGlobs(scopes: readonly string[]): readonly string[] {
  const known = globsOfScopes.get(scopes);
  if (known) return known;
  const globs = scopes.filter((scope) => scope.startsWith(TOOLS)).map((scope) => scope.slice(TOOLS.length));
  globsOfScopes.set(scopes, globs);
  return globs;
}
