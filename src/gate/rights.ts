import type { Caller } from "../access/caller.ts";
import { hasScope, type NamedScope } from "../access/scopes.ts";
import { Problem } from "../base/errors.ts";
import { type Sql, StoreUnavailable } from "../store/db.ts";

/** A 401 as RFC 6750 requires. */
export function unauthenticated(code: "unauthenticated" | "invalid_token", detail: string): Problem {
  return new Problem(code, detail, { headers: { "WWW-Authenticate": "Bearer" } });
}

/** The same answer for every invalid token and session: the reason is never disclosed. */
export function invalidToken(): Problem {
  return unauthenticated("invalid_token", "The token is unknown, expired or revoked.");
}

/**
 * Refuses a call if its caller's token or session has ended since it was authenticated, as `sql` sees it. Undefined
 * if that is known immediately, which is the usual case.
 * @throws Problem 401 `invalid_token`
 */
export function requireRights({ grant }: Pick<Caller, "grant">, sql: Sql): Promise<void> | undefined {
  const isValid = grant?.isValid(sql) ?? true;
  if (typeof isValid !== "boolean") return isValid.then(refuseUnless);
  refuseUnless(isValid);
  return undefined;
}

/**
 * Like `requireRights`, for a call that stops something. While the store cannot be read, the rights that were last read
 * count.
 */
export function requireKnownRights(caller: Pick<Caller, "grant">, sql: Sql): Promise<void> | undefined {
  return requireRights(caller, sql)?.catch((error: unknown) => {
    if (!(error instanceof StoreUnavailable)) throw error;
    refuseUnless(caller.grant?.wasValid ?? true);
  });
}

function refuseUnless(isValid: boolean): void {
  if (!isValid) throw invalidToken();
}

/** @throws Problem 403 `scope_missing` */
export function requireScope(
  { scopes }: Pick<Caller, "scopes">,
  scope: NamedScope | "admin" | readonly NamedScope[] | null,
): void {
  if (scope === null) return;
  const isEnough =
    typeof scope === "string" ? hasScope(scopes, scope) : scope.some((each) => hasScope(scopes, each));
  if (isEnough) return;
  const needed = typeof scope === "string" ? scope : scope.join(" or ");
  throw new Problem("scope_missing", `This needs a token with the scope ${needed}.`);
}
