/**
 * Headers that parameters cannot set: they belong to the connection, the message or the sender's identity. OpenAPI
 * itself ignores parameters named Accept, Content-Type and Authorization (3.1.1, 4.8.12.2.1).
 */
const RESERVED: ReadonlySet<string> = new Set([
  "accept",
  "accept-encoding",
  "authorization",
  "connection",
  "content-encoding",
  "content-length",
  "content-type",
  "cookie",
  "expect",
  "forwarded",
  "host",
  "http2-settings",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "via",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-proto",
  "x-http-method-override",
  "x-real-ip",
]);

export function isReservedHeader(name: string): boolean {
  return RESERVED.has(name.toLowerCase());
}

/** RFC 9110, 5.6.2. */
export function isHeaderName(name: string): boolean {
  return /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/.test(name);
}

/** Whether a value passes through a header unchanged: ASCII without line breaks or control characters. */
export function isHeaderValue(value: string): boolean {
  return /^[\t -~]*$/.test(value);
}
