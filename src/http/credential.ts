import { timingSafeEqual } from "node:crypto";
import { hasSecretForm, LINK_PREFIX } from "../access/secret.ts";
import type { Credential } from "../gate/gate.ts";
import { type Asked, isFromForeignPage, isFromOwnPage } from "./own-origin.ts";
import { readSessionCookie } from "./session-cookie.ts";

/** Headers with which the command line on this machine says for whom it asks; only its own secret makes them count. */
export const OPERATOR_USER_HEADER = "gatehouse-operator";
export const OPERATOR_WORKSPACE_HEADER = "gatehouse-workspace";

const BEARER = /^bearer +([A-Za-z0-9._~+/-]+=*) *$/i;
const USER = /^[\w.@-]{1,64}$/;

/** Reads `Authorization` (RFC 6750). `operatorSecret` is the running process's own, kept in its data directory. */
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
 * As `readCredential`, for what a browser may ask as well: the cookie of its session counts where there is no `Authorization`
 * header, good or bad, and where this server's own page has asked.
 */
export function readBrowserCredential(asked: Asked, operatorSecret: string): Credential {
  const given = readCredential(asked.request.headers, operatorSecret);
  if (given.kind !== "none") return given;
  const secret = readSessionCookie(asked);
  if (secret === null) return given;
  return isFromOwnPage(asked) ? { kind: "session", secret } : { kind: "foreign_page" };
}

/**
 * As `readCredential`, for signing in: no cookie counts, a one-time link's secret does, and no page of another origin may sign a
 * browser in as somebody else (login CSRF).
 */
export function readSignIn(asked: Asked, operatorSecret: string): Credential {
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
