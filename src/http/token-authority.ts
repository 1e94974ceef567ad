import { type Caller, tokenIdOf } from "../access/caller.ts";
import { firstNotHeld, hasScope } from "../access/scopes.ts";
import type { Token } from "../access/tokens.ts";
import { Problem } from "../base/errors.ts";

/**
 * Nobody may issue, rotate or revoke a token with more scopes than they hold.
 * @throws Problem 403 `scope_missing` that names the first scope the caller lacks
 */
export function requireHeld({ scopes: held }: Pick<Caller, "scopes">, scopes: readonly string[]): void {
  const missing = firstNotHeld(held, scopes);
  if (missing !== undefined) {
    throw new Problem("scope_missing", `This needs a token that itself has the scope ${missing}.`);
  }
}

/**
 * The person and role of a token that a caller issues. Without `admin`, these stay the caller's own: a token without
 * a person would sign decisions with whatever name it was given.
 */
export function holderOf(
  caller: Pick<Caller, "scopes" | "person" | "role">,
  { person, role }: { readonly person?: string | undefined; readonly role?: string | undefined },
): Pick<Token, "person" | "role"> {
  const own = hasScope(caller.scopes, "admin") ? { person: null, role: null } : caller;
  return { person: person ?? own.person, role: role ?? own.role };
}

/**
 * Without `admin`, nobody may get a token for another person or another role, because its decisions would count as
 * theirs.
 * @throws Problem 403 `scope_missing`
 */
export function requireOwnPerson(
  caller: Pick<Caller, "scopes" | "person" | "role">,
  { person, role }: Pick<Token, "person" | "role">,
): void {
  const isOwn = (person === null || person === caller.person) && (role === null || role === caller.role);
  if (isOwn || hasScope(caller.scopes, "admin")) return;
  const what = person === null || person === caller.person ? "in another role" : "for another person";
  throw new Problem("scope_missing", `A token ${what} can only be issued or rotated with the scope admin.`);
}

/**
 * Checks that a caller may rotate a token, which reveals its new secret. The caller must hold the token's scopes and
 * be the person that it names. Decisions by a token without a person count under the token's name. So if such a token
 * may decide on approvals, only the token itself, its issuer or an admin may rotate it.
 * @throws Problem 403 `scope_missing`
 */
export function requireRotatable(
  caller: Pick<Caller, "scopes" | "person" | "role" | "actor">,
  token: Pick<Token, "id" | "createdBy" | "agentId" | "person" | "role" | "scopes">,
): void {
  requireHeld(caller, token.scopes);
  requireOwnPerson(caller, token);
  const decidesByName =
    token.person === null && token.agentId === null && hasScope(token.scopes, "approvals:write");
  if (!decidesByName || hasScope(caller.scopes, "admin")) return;
  if (tokenIdOf(caller) === token.id || token.createdBy === caller.actor) return;
  throw new Problem(
    "scope_missing",
    "A token that may approve calls but names no person can only be rotated by itself, by its issuer, or with the scope admin.",
  );
}
