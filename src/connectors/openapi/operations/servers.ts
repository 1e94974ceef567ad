import { trimEndOf } from "../../../base/trim-end.ts";
import type { ApiDocument } from "../document.ts";
import { DocumentFault, quote } from "../fault.ts";
import { isMap, own, ownMap, ownText } from "../json.ts";

/**
 * Checks the base URL of operations, and returns it without a trailing `/`.
 * @throws DocumentFault if it is not an http or https URL, or contains anything that would be sent with every request
 */
export function checkBase(text: string, what: string): string {
  const url = URL.parse(text);
  if (!url || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw new DocumentFault(`${what} is not an http or https URL`);
  }
  if (url.username !== "" || url.password !== "") {
    throw new DocumentFault(`${what} must not contain a user or a password`);
  }
  if (url.search !== "" || url.hash !== "")
    throw new DocumentFault(`${what} must not contain a query or a fragment`);
  return `${url.origin}${trimEndOf(url.pathname, "/")}`;
}

/**
 * The first server of a `servers` list (OpenAPI 3.1.1, 4.8.5), with its variables at their defaults.
 * @param documentUrl resolves a relative server
 * @returns undefined if there is none: then the document's own server applies, or the root of its URL
 * @throws DocumentFault
 */
export function firstServer(servers: unknown, documentUrl: string | null): string | undefined {
  const first: unknown = Array.isArray(servers) ? servers[0] : undefined;
  const url = isMap(first) ? own(first, "url") : undefined;
  if (!isMap(first) || typeof url !== "string") return undefined;
  const variables = ownMap(first, "variables") ?? {};
  const filled = url.replace(/\{([^{}]*)\}/g, (_, name: string) => {
    const value = ownText(ownMap(variables, name) ?? {}, "default");
    if (value === undefined) throw new DocumentFault(`the server ${quote(url)} has no default for {${name}}`);
    return value;
  });
  const absolute = URL.parse(filled, documentUrl ?? undefined);
  if (!absolute) {
    throw new DocumentFault(`its server ${quote(url)} is not an absolute URL: set base_url`);
  }
  return checkBase(absolute.href, `its server ${quote(url)}`);
}

/**
 * The document's own server: its first; if it has none, the root of the document's URL (OpenAPI 3.1.1, 4.8.1.1).
 * @throws DocumentFault
 */
export function documentServer({ root, url }: ApiDocument): string {
  const server = firstServer(own(root, "servers"), url);
  if (server !== undefined) return server;
  if (url === null) throw new DocumentFault("it names no server: set base_url");
  return checkBase(new URL(url).origin, "the spec's URL");
}
