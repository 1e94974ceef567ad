import type { ParameterBinding, WritingStyle } from "../binding.ts";
import { isHeaderName, isReservedHeader } from "../call/headers.ts";
import { DocumentFault, quote } from "../fault.ts";
import { isMap, type JsonMap, own, ownBoolean, ownMap, ownText } from "../json.ts";
import type { Argument } from "../schema/input.ts";
import type { ArgumentNames } from "./arguments.ts";
import { isJson } from "./media-type.ts";
import type { ApiOperation, ParameterLocation } from "./operation.ts";

/** The parameter that carries the connector's own `auth`, which callers must not set. */
export interface ReservedName {
  readonly in: "header" | "query";
  readonly name: string;
}

export interface ParameterArgument {
  readonly binding: ParameterBinding;
  readonly argument: Argument;
}

const PLACES: Readonly<Record<ParameterLocation, readonly WritingStyle["style"][]>> = {
  path: ["simple", "label", "matrix"],
  query: ["form", "spaceDelimited", "pipeDelimited", "deepObject"],
  header: ["simple"],
  cookie: ["form"],
};

/**
 * An operation's parameters as arguments, without those that the gateway sets itself. Path fields without a
 * description accept a string.
 * @throws DocumentFault
 */
export function takeParameters(
  operation: ApiOperation,
  names: ArgumentNames,
  reserved: ReservedName | null,
): ParameterArgument[] {
  const inPath = new Set([...operation.path.matchAll(/\{([^{}]+)\}/g)].map(([, name = ""]) => name));
  const taken: ParameterArgument[] = [];
  for (const parameter of operation.parameters) {
    const { name, place } = identityOf(parameter);
    // The path has no place for it, so it cannot be sent.
    if (place === "path" && !inPath.delete(name)) continue;
    if (place === "header") {
      if (isReservedHeader(name)) continue;
      if (!isHeaderName(name))
        throw new DocumentFault(`its parameter ${quote(name)} is not a valid header name`);
    }
    if (reserved && isSame(reserved, place, name)) continue;
    taken.push(takeParameter(parameter, name, place, names.take(name, place)));
  }
  for (const name of inPath) {
    const argument = names.take(name, "path");
    taken.push({
      binding: { argument, name, in: "path", style: "simple", explode: false },
      argument: { name: argument, schema: { type: "string" }, description: undefined, required: true },
    });
  }
  return taken;
}

function takeParameter(
  parameter: JsonMap,
  name: string,
  place: ParameterLocation,
  argument: string,
): ParameterArgument {
  const style = styleOf(parameter, name, place);
  const content = Object.entries(ownMap(parameter, "content") ?? {})[0];
  const media: unknown = content?.[1];
  return {
    binding: {
      argument,
      name,
      in: place,
      style,
      explode: ownBoolean(parameter, "explode") ?? style === "form",
      ...(place === "query" && ownBoolean(parameter, "allowReserved") ? { allowReserved: true } : {}),
      ...(content && isJson(content[0]) ? { json: true } : {}),
    },
    argument: {
      name: argument,
      schema: isMap(media) ? own(media, "schema") : own(parameter, "schema"),
      description: ownText(parameter, "description"),
      required: place === "path" || ownBoolean(parameter, "required") === true,
    },
  };
}

function styleOf(parameter: JsonMap, name: string, place: ParameterLocation): WritingStyle["style"] {
  const given = own(parameter, "style");
  const styles = PLACES[place];
  const style = styles.find((each) => (given === undefined ? true : each === given));
  if (style === undefined) {
    throw new DocumentFault(
      `its parameter ${quote(name)} in ${place} has the unsupported style ${quote(String(given))}`,
    );
  }
  return style;
}

function identityOf(parameter: JsonMap): { readonly name: string; readonly place: ParameterLocation } {
  const name = ownText(parameter, "name") ?? "";
  const given = own(parameter, "in");
  for (const place of ["path", "query", "header", "cookie"] as const)
    if (given === place) return { name, place };
  throw new DocumentFault(`its parameter ${quote(name)} has the unknown location ${quote(String(given))}`);
}

function isSame(reserved: ReservedName, place: ParameterLocation, name: string): boolean {
  if (reserved.in !== place) return false;
  return place === "header" ? reserved.name.toLowerCase() === name.toLowerCase() : reserved.name === name;
}
