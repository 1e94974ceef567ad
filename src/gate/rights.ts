import type { Caller } from "../access/caller.ts";
import { Problem } from "../base/errors.ts";
import type { Sql } from "../store/db.ts";

/** 401 as RFC 6750 wants it. */
export function unauthenticated(code: "unauthenticated" | "invalid_token", detail: string): Problem {
  return new Problem(code, detail, { headers: { "WWW-Authenticate": "Bearer" } });
}

/** The one answer to every token and session that does not count: the reason is never disclosed. */
export function invalidToken(): Problem {
  return unauthenticated("invalid_token", "The token is unknown, expired or revoked.");
}

/**
 * Refuses what a caller asks for if its token or session has ended since it was authenticated, as `sql` sees it. Undefined if that
 * is known at once, which is the rule.
 * @throws Problem 401 `invalid_token`
 */
export function requireRights({ grant }: Pick<Caller, "grant">, sql: Sql): Promise<void> | undefined {
  const holds = grant?.holds(sql) ?? true;
  if (typeof holds !== "boolean") return holds.then(refuseUnless);
  refuseUnless(holds);
  return undefined;
}

function refuseUnless(holds: boolean): void {
  if (!holds) throw invalidToken();
}
