import { isLoopback } from "../config/listen.ts";

/** What is asked: the headers by which a browser says whence, and the address that it knows the server by. */
export interface Asked {
  readonly request: Request;
  /** What clients see, where it is configured. */
  readonly publicUrl: string | null;
}

const HOST = /^[^\s/?#@\\]+$/;

/**
 * Whether a request that carries a browser's cookie was made by this server's own page, so that nobody else's page can act by it
 * (CSRF). `SameSite=Strict` keeps other sites out, and not those that count as the same one: another port of this host, a
 * sibling of its domain. So it has to be said by the browser, in headers that no page can set: `Sec-Fetch-Site` (W3C Fetch
 * Metadata) must be `same-origin`, or `none` where a person has asked for something to be read; and `Origin` must be this
 * server's wherever it is sent. A browser sends no `Sec-Fetch-Site` over plain HTTP but to the machine itself: there `Origin`, which
 * comes with every method but GET and HEAD (Fetch, section 3.2), has to be there for any of the others (OWASP, Cross-Site
 * Request Forgery Prevention Cheat Sheet, "Fetch Metadata headers" and "Using standard headers to verify origin").
 */
export function isFromOwnPage(asked: Asked): boolean {
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
 * Whether a page of another origin has made the request, as far as its headers say. What is no browser sends neither header, and
 * is none.
 */
export function isFromForeignPage(asked: Asked): boolean {
  const site = asked.request.headers.get("sec-fetch-site");
  return namesAnotherOrigin(asked) || (site !== null && site !== "same-origin");
}

function namesAnotherOrigin({ request, publicUrl }: Asked): boolean {
  const origin = request.headers.get("origin");
  if (origin === null) return false;
  const published = publicUrl === null ? null : new URL(publicUrl);
  if (published !== null && origin === published.origin) return false;
  const host = hostOf(request);
  // At the public name the public URL's origin is the only one: http: beside https: is somebody on the way.
  if (host === null || host === published?.host) return true;
  return origin !== URL.parse(`${schemeOf(request)}://${host}`)?.origin;
}

/** Whether cookies of this server may say `Secure`: its clients come by HTTPS, to it or to a proxy in front. */
export function isSecure({ request, publicUrl }: Asked): boolean {
  return publicUrl?.startsWith("https:") === true || schemeOf(request) === "https";
}

/**
 * Whether the browser would drop a cookie that says `Secure`, as this server's do where its clients come by HTTPS: its page was
 * opened by plain HTTP, and not from the machine itself, whose own names browsers trust as they do HTTPS (RFC 6265bis, section
 * 5.7; W3C Secure Contexts, "Is origin potentially trustworthy?"). The page is the one that `Origin` names; where nothing does,
 * the address that was asked, which at the public name is the public URL's.
 */
export function dropsSecureCookies(asked: Asked): boolean {
  if (!isSecure(asked)) return false;
  const page = URL.parse(asked.request.headers.get("origin") ?? addressOf(asked));
  return page?.protocol === "http:" && !isTrusted(page.hostname);
}

function addressOf({ request, publicUrl }: Asked): string {
  const host = hostOf(request);
  if (publicUrl !== null && (host === null || host === new URL(publicUrl).host)) return publicUrl;
  return `${schemeOf(request)}://${host}`;
}

function isTrusted(hostname: string): boolean {
  return isLoopback(hostname.replace(/^\[(.*)\]$/, "$1")) || hostname.endsWith(".localhost");
}

/**
 * The port that the browser has asked at, which a container or a proxy may have mapped to another: cookies know no ports, so
 * that two gateways of one machine need two names for theirs (RFC 6265, section 8.5).
 */
export function portOf(asked: Asked): number {
  const port = /:(\d{1,5})$/.exec(hostOf(asked.request) ?? "")?.[1];
  return port === undefined ? (isSecure(asked) ? 443 : 80) : Number(port);
}

function hostOf(request: Request): string | null {
  const host = request.headers.get("host") ?? URL.parse(request.url)?.host ?? "";
  return HOST.test(host) ? host.toLowerCase() : null;
}

/** A client may forge the header: then it deceives itself, since it alone gets the cookie that follows from it. */
function schemeOf(request: Request): "http" | "https" {
  const forwarded = request.headers.get("x-forwarded-proto")?.split(",")[0]?.trim().toLowerCase();
  return forwarded === "https" || request.url.startsWith("https:") ? "https" : "http";
}
