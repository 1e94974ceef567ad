import type { TObject, TProperties } from "typebox";
import { invalidField } from "../base/errors.ts";

/**
 * The query parameters of a request, converted to the schema's types: integers and booleans are parsed, everything
 * else stays text for the schema to validate. A list's values are all parameters with its name.
 * @throws Problem 422 `validation_failed` for a duplicate parameter
 */
export function readQuery(url: string, schema: TObject<TProperties>): Record<string, unknown> {
  const mark = url.indexOf("?");
  const values: Record<string, unknown> = {};
  if (mark < 0) return values;
  for (const [name, text] of new URLSearchParams(url.slice(mark + 1))) {
    const list = Object.hasOwn(values, name) ? values[name] : undefined;
    if (Array.isArray(list)) {
      list.push(text);
      continue;
    }
    if (Object.hasOwn(values, name)) throw invalidField(`/${name}`, "is given twice");
    Object.defineProperty(values, name, {
      value: convert(text, schema.properties[name]),
      enumerable: true,
      configurable: true,
    });
  }
  return values;
}

function convert(text: string, schema: object | undefined): unknown {
  const type = schema && "type" in schema ? schema.type : undefined;
  if (type === "array") return [text];
  if (type === "integer" && /^-?\d{1,15}$/.test(text)) return Number(text);
  if (type === "boolean" && (text === "true" || text === "false")) return text === "true";
  return text;
}
