import { type Caller, tokenIdOf } from "../../access/caller.ts";
import { firstNotHeld, hasScope } from "../../access/scopes.ts";
import type { Token } from "../../access/tokens.ts";
import { Problem } from "../../base/errors.ts";

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
 * Whether a caller may give tokens to people. A token that acts as an agent only has that agent's rights, whatever
 * its scopes.
 */
function isAdmin({ scopes, agent }: Pick<Caller, "scopes" | "agent">): boolean {
  return agent === null && hasScope(scopes, "admin");
}

/**
 * The person and role of a token that a caller issues. Without `admin`, these stay the caller's own, because a token
 * without a person would sign decisions with whatever name it was given.
 */
export function holderOf(
  caller: Pick<Caller, "scopes" | "agent" | "person" | "role">,
  { person, role }: { readonly person?: string | undefined; readonly role?: string | undefined },
): Pick<Token, "person" | "role"> {
  const own = isAdmin(caller) ? { person: null, role: null } : caller;
  return { person: person ?? own.person, role: role ?? own.role };
}

/**
 * Checks that a caller may issue a token: it must hold the token's scopes and be the person that the token names.
 * Decisions by a token without a person count under the token's name, which can be anybody's. So if such a token may
 * decide on approvals, only an admin may issue it.
 * @throws Problem 403 `scope_missing`
 */
export function requireIssuable(
  caller: Pick<Caller, "scopes" | "agent" | "person" | "role">,
  token: Pick<Token, "agentId" | "person" | "role" | "scopes">,
): void {
  requireHeld(caller, token.scopes);
  requireOwnPerson(caller, token);
  if (!decidesByName(token) || isAdmin(caller)) return;
  throw new Problem(
    "scope_missing",
    "A token that may approve calls but does not name a person can only be issued with the scope admin.",
  );
}

/**
 * Checks that a caller may rotate a token, which reveals its new secret. The rules for issuing it apply, except that
 * each token may rotate itself.
 * @throws Problem 403 `scope_missing`
 */
export function requireRotatable(
  caller: Pick<Caller, "scopes" | "agent" | "person" | "role" | "actor">,
  token: Pick<Token, "id" | "agentId" | "person" | "role" | "scopes">,
): void {
  requireHeld(caller, token.scopes);
  requireOwnPerson(caller, token);
  if (!decidesByName(token) || isAdmin(caller) || tokenIdOf(caller) === token.id) return;
  throw new Problem(
    "scope_missing",
    "A token that may approve calls but does not name a person can only be rotated by itself or with the scope admin.",
  );
}

/**
 * Without `admin`, nobody may get a token for another person or another role, because its decisions would count as
 * that person's.
 * @throws Problem 403 `scope_missing`
 */
function requireOwnPerson(
  caller: Pick<Caller, "scopes" | "agent" | "person" | "role">,
  { person, role }: Pick<Token, "person" | "role">,
): void {
  const isOwnPerson = person === null || person === caller.person;
  if ((isOwnPerson && (role === null || role === caller.role)) || isAdmin(caller)) return;
  const what = isOwnPerson ? "in another role" : "for another person";
  throw new Problem("scope_missing", `A token ${what} can only be issued or rotated with the scope admin.`);
}

/** Whether a token's decisions are recorded under its own name. A token that acts as an agent decides nothing. */
function decidesByName({ person, agentId, scopes }: Pick<Token, "person" | "agentId" | "scopes">): boolean {
  return person === null && agentId === null && hasScope(scopes, "approvals:write");
}
