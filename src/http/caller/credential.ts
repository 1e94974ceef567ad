import { timingSafeEqual } from "node:crypto";
import { hasSecretForm, LINK_PREFIX } from "../../access/secret.ts";
import type { Credential } from "../../gate/gate.ts";
import { isFromForeignPage, isFromOwnPage, type OriginCheck } from "./own-origin.ts";
import { readSessionCookie } from "./session-cookie.ts";

/**
 * Headers in which the command line on this machine names its user and workspace. They count only together with the
 * process's own secret.
 */
export const OPERATOR_USER_HEADER = "gatehouse-operator";
export const OPERATOR_WORKSPACE_HEADER = "gatehouse-workspace";

const BEARER = /^bearer +([A-Za-z0-9._~+/-]+=*) *$/i;
const USER = /^[\w.@-]{1,64}$/;

/**
 * Reads `Authorization` (RFC 6750). `operatorSecret` belongs to the running process and is kept in its data
 * directory.
 */
export function readCredential(headers: Headers, operatorSecret: string): Credential {
  const header = headers.get("authorization");
  if (header === null) return { kind: "none" };
  const secret = BEARER.exec(header)?.[1];
  if (secret === undefined) return { kind: "malformed" };
  const user = headers.get(OPERATOR_USER_HEADER);
  if (user === null || !sameText(secret, operatorSecret)) return { kind: "bearer", secret };
  return {
    kind: "operator",
    user: USER.test(user) ? user : "operator",
    workspace: headers.get(OPERATOR_WORKSPACE_HEADER) ?? "default",
  };
}

/**
 * Like `readCredential`, for the endpoints of existing clients, which send the secret as `x-api-key` or as a bearer
 * token. No cookies: a page cannot spend credits.
 */
export function readClientCredential(asked: OriginCheck, operatorSecret: string): Credential {
  const { headers } = asked.request;
  const given = readCredential(headers, operatorSecret);
  const secret = headers.get("x-api-key")?.trim();
  if (
    secret === undefined ||
    (given.kind === "bearer" && hasSecretForm(given.secret)) ||
    given.kind === "operator"
  ) {
    return given;
  }
  return { kind: "bearer", secret };
}

/**
 * Like `readCredential`, for endpoints that browsers may also call. The session cookie counts if there is no
 * `Authorization` header, valid or not, and the request came from this server's own page.
 */
export function readBrowserCredential(asked: OriginCheck, operatorSecret: string): Credential {
  const given = readCredential(asked.request.headers, operatorSecret);
  if (given.kind !== "none") return given;
  const secret = readSessionCookie(asked);
  if (secret === null) return given;
  return isFromOwnPage(asked) ? { kind: "session", secret } : { kind: "foreign_page" };
}

/** Like `readCredential`, for endpoints that browsers and existing clients call. */
export function readAnyCredential(asked: OriginCheck, operatorSecret: string): Credential {
  const isClient = asked.request.headers.has("x-api-key");
  return (isClient ? readClientCredential : readBrowserCredential)(asked, operatorSecret);
}

/**
 * Like `readCredential`, for signing in. Cookies do not count, but the secret of a one-time link does. A page of
 * another origin must not sign a browser in as somebody else (login CSRF).
 */
export function readSignIn(asked: OriginCheck, operatorSecret: string): Credential {
  if (isFromForeignPage(asked)) return { kind: "foreign_page" };
  const given = readCredential(asked.request.headers, operatorSecret);
  const isLink = given.kind === "bearer" && hasSecretForm(given.secret, LINK_PREFIX);
  return isLink ? { kind: "link", secret: given.secret } : given;
}

function sameText(a: string, b: string): boolean {
  const left = Buffer.from(a);
  const right = Buffer.from(b);
  return left.length === right.length && timingSafeEqual(left, right);
}
