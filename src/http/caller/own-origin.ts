import { isLoopback } from "../../config/listen.ts";

/** A request, whose headers reveal which page made it, and the server's configured address. */
export interface OriginCheck {
  readonly request: Request;
  /** The configured URL that clients use. */
  readonly publicUrl: string | null;
}

const HOST = /^[^\s/?#@\\]+$/;

/**
 * Whether a request with a browser's cookie was made by this server's own page, so that no other page can act with
 * that cookie (CSRF). `SameSite=Strict` keeps out other sites, but not other origins of the same site: another port
 * of this host, or a sibling domain. So the browser must confirm it in headers that no page can set. `Sec-Fetch-Site`
 * (W3C Fetch Metadata) must be `same-origin`, or `none` if a person opened a page. `Origin`, if sent, must be this
 * server's. Over plain HTTP, browsers send `Sec-Fetch-Site` only to the machine itself. Without it, every method
 * except GET and HEAD must have `Origin`, which browsers always send with those methods (Fetch, section 3.2; OWASP,
 * Cross-Site Request Forgery Prevention Cheat Sheet, "Fetch Metadata headers" and "Using standard headers to verify
 * origin").
 */
export function isFromOwnPage(asked: OriginCheck): boolean {
  const { headers, method } = asked.request;
  if (namesAnotherOrigin(asked)) return false;
  const isRead = method === "GET" || method === "HEAD";
  switch (headers.get("sec-fetch-site")) {
    case "same-origin":
      return true;
    case "none":
      return isRead;
    case null:
      return isRead || headers.has("origin");
    default:
      return false;
  }
}

/**
 * Whether a page from another origin made the request, judging by its headers. Programs that are not browsers send
 * neither header, and do not count as pages.
 */
export function isFromForeignPage(asked: OriginCheck): boolean {
  const site = asked.request.headers.get("sec-fetch-site");
  return namesAnotherOrigin(asked) || (site !== null && site !== "same-origin");
}

function namesAnotherOrigin({ request, publicUrl }: OriginCheck): boolean {
  const origin = request.headers.get("origin");
  if (origin === null) return false;
  const published = publicUrl === null ? null : new URL(publicUrl);
  if (published !== null && origin === published.origin) return false;
  const host = hostOf(request);
  // At the public name, only the public URL's origin is accepted: http: instead of https: means an attacker in
  // between.
  if (host === null || host === published?.host) return true;
  return origin !== URL.parse(`${schemeOf(request)}://${host}`)?.origin;
}

/** Whether this server's cookies may have `Secure`: clients use HTTPS, either directly or to a proxy in front. */
export function isSecure({ request, publicUrl }: OriginCheck): boolean {
  return publicUrl?.startsWith("https:") === true || schemeOf(request) === "https";
}

/**
 * Whether the browser would drop a cookie with `Secure`, which this server sets if its clients use HTTPS. Browsers
 * drop it if the page was opened over plain HTTP from another machine; they trust the machine's own names like HTTPS
 * (RFC 6265bis, section 5.7; W3C Secure Contexts, "Is origin potentially trustworthy?"). `Origin` names the page.
 * Without that header, the requested address counts, which is the public URL if the public name was requested.
 */
export function dropsSecureCookies(asked: OriginCheck): boolean {
  if (!isSecure(asked)) return false;
  const page = URL.parse(asked.request.headers.get("origin") ?? addressOf(asked));
  return page?.protocol === "http:" && !isTrusted(page.hostname);
}

function addressOf({ request, publicUrl }: OriginCheck): string {
  const host = hostOf(request);
  if (publicUrl !== null && (host === null || host === new URL(publicUrl).host)) return publicUrl;
  return `${schemeOf(request)}://${host}`;
}

function isTrusted(hostname: string): boolean {
  return isLoopback(hostname.replace(/^\[(.*)\]$/, "$1")) || hostname.endsWith(".localhost");
}

/**
 * The port that the browser used, which a container or proxy may map to another. Cookies ignore ports, so two
 * gateways on one machine need different cookie names (RFC 6265, section 8.5).
 */
export function portOf(asked: OriginCheck): number {
  const port = /:(\d{1,5})$/.exec(hostOf(asked.request) ?? "")?.[1];
  return port === undefined ? (isSecure(asked) ? 443 : 80) : Number(port);
}

function hostOf(request: Request): string | null {
  const host = request.headers.get("host") ?? URL.parse(request.url)?.host ?? "";
  return HOST.test(host) ? host.toLowerCase() : null;
}

/** A client can forge the header, but only affects itself: nobody else gets the resulting cookie. */
function schemeOf(request: Request): "http" | "https" {
  const forwarded = request.headers.get("x-forwarded-proto")?.split(",")[0]?.trim().toLowerCase();
  return forwarded === "https" || request.url.startsWith("https:") ? "https" : "http";
}
