import { Problem } from "../base/errors.ts";

export interface OriginRules {
  /** What clients see, where it is configured. */
  readonly publicUrl: string | null;
  /** Whether the server listens on this machine alone. */
  readonly isLoopback: boolean;
}

const LOCAL_NAMES = new Set(["localhost", "127.0.0.1", "[::1]"]);

/**
 * Refuses what a page of another site makes a browser send (DNS rebinding; specification 2025-11-25, "Security Warning"). A
 * browser names the page's origin, `null` among them; programs name none. A server for this machine alone is addressed by a
 * local name or address, or as `public_url` says: another name that leads here is an attacker's.
 * @throws Problem 403 `origin_forbidden`
 */
export function refuseForeign(headers: Headers, rules: OriginRules): void {
  // Every browser names the host. Who names none is within this process, or speaks HTTP/1.0.
  const host = headers.get("host")?.toLowerCase() ?? "";
  const publicUrl = rules.publicUrl === null ? null : new URL(rules.publicUrl);
  if (rules.isLoopback && host !== "" && host !== publicUrl?.host && !isLocal(host)) {
    throw new Problem(
      "origin_forbidden",
      "The Host header is not this server's. If it is reached by another name, set public_url.",
    );
  }
  const origin = headers.get("origin");
  if (origin === null) return;
  const parsed = URL.parse(origin);
  if (publicUrl !== null && parsed?.origin === publicUrl.origin) return;
  // A page at the public name has the public URL's origin, or it is another site's: http: beside https: is one.
  // Where it is known by a public name, any other name that leads here may be an attacker's.
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

/** Where a client reaches the path `path` of this server, as far as its Host header tells. */
export function urlOf(request: Request, path: string, { publicUrl }: OriginRules): string {
  const host = request.headers.get("host");
  if (publicUrl !== null && (host === null || new URL(publicUrl).host === host)) return `${publicUrl}${path}`;
  return `${host === null ? new URL(request.url).origin : `http://${host}`}${path}`;
}
