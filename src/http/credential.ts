import { timingSafeEqual } from "node:crypto";
import type { Credential } from "../gate/gate.ts";

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

function sameText(a: string, b: string): boolean {
  const left = Buffer.from(a);
  const right = Buffer.from(b);
  return left.length === right.length && timingSafeEqual(left, right);
}
