import type { JsonObject } from "../../../agents/index.ts";
import type { OpenApiAuth } from "../../definition/definition.ts";
import type { OperationBinding } from "../binding.ts";
import { ArgumentFault, quote } from "../fault.ts";
import { own } from "../json.ts";
import { authorise, reservedName } from "./auth.ts";
import { encodeBody } from "./body.ts";
import { isHeaderValue, isReservedHeader } from "./headers.ts";
import { headerText, pairsOf } from "./style.ts";
import { urlOf } from "./url.ts";

const ACCEPT = "application/json, text/*;q=0.9, */*;q=0.5";

export interface ApiRequest {
  readonly url: URL;
  readonly init: RequestInit;
}

/**
 * Builds the HTTP request of a call.
 * @param base the absolute URL that the operation's path is relative to, without a trailing `/`
 * @param auth null if that server must not receive credentials
 * @throws ArgumentFault if an argument cannot be sent
 */
export function requestOf(
  binding: OperationBinding,
  base: string,
  auth: OpenApiAuth | null,
  input: JsonObject,
): ApiRequest {
  const reserved = reservedName(auth);
  const url = urlOf(base, binding, input, reserved?.in === "query" ? reserved.name : undefined);
  const headers = new Headers({ accept: ACCEPT });
  setHeaders(headers, binding, input);
  const value = own(input, "body");
  const body = binding.body && value !== undefined ? encodeBody(binding.body, value) : undefined;
  if (body) headers.set("content-type", body.type);
  if (auth) authorise(auth, url, headers);
  return { url, init: { method: binding.method, headers, ...(body ? { body: body.content } : {}) } };
}

function setHeaders(headers: Headers, binding: OperationBinding, input: JsonObject): void {
  const cookies: string[] = [];
  for (const parameter of binding.parameters) {
    const value = own(input, parameter.argument);
    if (value === undefined || value === null) continue;
    if (parameter.in === "cookie") {
      for (const pair of pairsOf(parameter.name, value, parameter)) cookies.push(pair.join("="));
    } else if (parameter.in === "header" && !isReservedHeader(parameter.name)) {
      const text = headerText(value, parameter);
      if (!isHeaderValue(text)) {
        throw new ArgumentFault(
          `the argument ${quote(parameter.argument)} must be one line of ASCII, because it is sent in a header`,
        );
      }
      headers.set(parameter.name, text);
    }
  }
  if (cookies.length > 0) headers.set("cookie", cookies.join("; "));
}
