import type { JsonObject } from "../../../agents/index.ts";
import type { OperationBinding } from "../binding.ts";
import { ArgumentFault, quote } from "../fault.ts";
import { own } from "../json.ts";
import { isDotSegment } from "../path.ts";
import { type NameValue, pairsOf, pathText } from "./style.ts";

/** Maximum length of a URL in characters. Servers typically accept about 8,000. */
const MAX_URL = 16_000;

/**
 * Builds the URL of a call. It stays below `base`, and its path has as many segments as the operation's path.
 * @param reservedQuery a name that no argument may set
 * @throws ArgumentFault
 */
export function urlOf(
  base: string,
  binding: OperationBinding,
  input: JsonObject,
  reservedQuery: string | undefined,
): URL {
  const path = pathOf(binding, input);
  const query = binding.parameters
    .filter((parameter) => parameter.in === "query")
    .flatMap((parameter) => {
      const value = own(input, parameter.argument);
      return value === undefined || value === null ? [] : pairsOf(parameter.name, value, parameter);
    });
  refuseReserved(query, reservedQuery);
  const text = `${base}${path}${query.length === 0 ? "" : `?${query.map((pair) => pair.join("=")).join("&")}`}`;
  if (text.length > MAX_URL) {
    throw new ArgumentFault(`the arguments make the URL longer than ${MAX_URL} characters`);
  }
  const url = new URL(text);
  // The code above ensures this. If it ever fails, nothing may be sent.
  const root = new URL(base);
  if (url.origin !== root.origin || !url.pathname.startsWith(`${root.pathname.replace(/\/$/, "")}/`)) {
    throw new ArgumentFault("the arguments lead to a path outside the API");
  }
  return url;
}

/** Builds the path by segment, since each segment must be checked as a whole. */
function pathOf(binding: OperationBinding, input: JsonObject): string {
  const parameters = new Map(
    binding.parameters
      .filter((parameter) => parameter.in === "path")
      .map((parameter) => [parameter.name, parameter]),
  );
  const segments = binding.path.split("/").map((segment) => {
    const filled = segment.replace(/\{([^{}]+)\}/g, (_, name: string) => {
      const parameter = parameters.get(name);
      const value = parameter && own(input, parameter.argument);
      if (!parameter || value === undefined || value === null) {
        throw new ArgumentFault(`the argument ${quote(parameter?.argument ?? name)} is missing`);
      }
      return pathText(name, value, parameter);
    });
    if (filled !== segment && (filled === "" || isDotSegment(filled))) {
      const [, name = ""] = /\{([^{}]+)\}/.exec(segment) ?? [];
      const argument = parameters.get(name)?.argument ?? name;
      throw new ArgumentFault(
        `the argument ${quote(argument)} must not be empty, "." or "..", which would lead to another path`,
      );
    }
    return filled;
  });
  return segments.join("/");
}

/** An object's fields become query names: none of them may be the name that carries the connector's secret. */
function refuseReserved(query: readonly NameValue[], reserved: string | undefined): void {
  for (const [name] of query) {
    if (reserved !== undefined && decodeURIComponent(name) === reserved) {
      throw new ArgumentFault(`the arguments must not set ${quote(reserved)}`);
    }
  }
}
