import { hasSecretForm, SESSION_PREFIX } from "../../access/secret.ts";
import { isSecure, type OriginCheck, portOf } from "./own-origin.ts";

const NAME = "gatehouse_session";

/**
 * The secret of the session that a browser is signed in with. Null if the browser sends none, or two cookies of the
 * same name: another host of the domain may have planted one, and they cannot be told apart (RFC 6265, section 8.6).
 */
export function readSessionCookie(asked: OriginCheck): string | null {
  const header = asked.request.headers.get("cookie");
  if (header === null) return null;
  const name = nameOf(asked);
  const values = new Set<string>();
  for (const pair of header.split(";")) {
    const mark = pair.indexOf("=");
    if (mark >= 0 && pair.slice(0, mark).trim() === name) values.add(pair.slice(mark + 1).trim());
  }
  const [secret, another] = values;
  return secret !== undefined && another === undefined && hasSecretForm(secret, SESSION_PREFIX)
    ? secret
    : null;
}

/** The `Set-Cookie` header that signs a browser in for this many milliseconds. */
export function sessionCookie(asked: OriginCheck, secret: string, lifetimeMs: number): string {
  return cookie(asked, secret, Math.max(0, Math.floor(lifetimeMs / 1_000)));
}

/** The `Set-Cookie` header that makes a browser forget its session. */
export function endedCookie(asked: OriginCheck): string {
  return cookie(asked, "", 0);
}

function cookie(asked: OriginCheck, value: string, maxAge: number): string {
  const secure = isSecure(asked) ? "; Secure" : "";
  return `${nameOf(asked)}=${value}; Path=/; Max-Age=${maxAge}; HttpOnly; SameSite=Strict${secure}`;
}

/**
 * `__Host-` keeps other hosts of the domain from planting a cookie (RFC 6265bis, section 4.1.3.2). Browsers require
 * HTTPS for it.
 */
function nameOf(asked: OriginCheck): string {
  const port = portOf(asked);
  if (!isSecure(asked)) return `${NAME}_${port}`;
  return port === 443 ? `__Host-${NAME}` : `__Host-${NAME}_${port}`;
}
