import { Problem } from "../base/errors.ts";

export interface OriginRules {
  /** The configured URL that clients use. */
  readonly publicUrl: string | null;
  /** Whether only this machine can reach the server. */
  readonly isLoopback: boolean;
}

const LOCAL_NAMES = new Set(["localhost", "127.0.0.1", "[::1]"]);

/**
 * Refuses requests that a page of another site made a browser send (DNS rebinding; specification 2025-11-25,
 * "Security Warning"). Browsers name the page's origin, which may be `null`; other programs name none. A server that
 * listens only on this machine is addressed by a local name or address, or by `public_url`. Any other name that
 * resolves to it belongs to an attacker.
 * @throws Problem 403 `origin_forbidden`
 */
export function refuseForeign(headers: Headers, rules: OriginRules): void {
  // Every browser sends the host. A request without it is from within this process, or uses HTTP/1.0.
  const host = headers.get("host")?.toLowerCase() ?? "";
  const publicUrl = rules.publicUrl === null ? null : new URL(rules.publicUrl);
  if (rules.isLoopback && host !== "" && host !== publicUrl?.host && !isLocal(host)) {
    throw new Problem(
      "origin_forbidden",
      "The Host header does not name this server. If clients use another name, set public_url.",
    );
  }
  const origin = headers.get("origin");
  if (origin === null) return;
  const parsed = URL.parse(origin);
  if (publicUrl !== null && parsed?.origin === publicUrl.origin) return;
  // A page at the public name must have the public URL's origin, so http: instead of https: counts as another site.
  // If there is a public name, any other name that resolves here may be an attacker's.
  const isOwn =
    parsed !== null &&
    /^https?:$/.test(parsed.protocol) &&
    parsed.host === host &&
    (publicUrl === null || isLocal(host));
  if (!isOwn) throw new Problem("origin_forbidden", "The Origin header names another site.");
}

function isLocal(host: string): boolean {
  const name = host.replace(/:\d+$/, "");
  return LOCAL_NAMES.has(name) || /^127(\.\d{1,3}){3}$/.test(name);
}

/** The URL at which the client reaches this path of the server, judging by its Host header. */
export function urlOf(request: Request, path: string, { publicUrl }: OriginRules): string {
  const host = request.headers.get("host");
  if (publicUrl !== null && (host === null || new URL(publicUrl).host === host)) return `${publicUrl}${path}`;
  return `${host === null ? new URL(request.url).origin : `http://${host}`}${path}`;
}
