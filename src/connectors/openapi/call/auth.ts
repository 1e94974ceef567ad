import type { OpenApiAuth } from "../../definition/definition.ts";
import type { ReservedName } from "../operations/parameters.ts";
import { percentEncode } from "./encode.ts";

/**
 * The parameter name that carries the connector's own secret; null if the secret is in a header that is reserved in
 * any case.
 */
export function reservedName(auth: OpenApiAuth | null): ReservedName | null {
  return auth?.type === "header" || auth?.type === "query" ? { in: auth.type, name: auth.name } : null;
}

/** Adds the connector's secret to a request. MUST come last, so that nothing can replace the secret. */
export function authorise(auth: OpenApiAuth, url: URL, headers: Headers): void {
  switch (auth.type) {
    case "bearer":
      headers.set("authorization", `Bearer ${auth.token}`);
      return;
    case "basic": {
      // RFC 7617 in UTF-8.
      const pair = Buffer.from(`${auth.username}:${auth.password}`).toString("base64");
      headers.set("authorization", `Basic ${pair}`);
      return;
    }
    case "header":
      headers.set(auth.name, auth.value);
      return;
    case "query":
      url.search = `${url.search === "" ? "?" : `${url.search}&`}${percentEncode(auth.name)}=${percentEncode(auth.value)}`;
  }
}
