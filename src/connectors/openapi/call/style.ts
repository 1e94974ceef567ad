import type { WritingStyle } from "../binding.ts";
import { isMap } from "../json.ts";
import { percentEncode, scalarText } from "./encode.ts";

/** A name and a value, both encoded for a query or a cookie. */
export type NameValue = readonly [name: string, value: string];

type Encode = (text: string) => string;

/** A parameter's value: a single one, a list or an object, with each part as encoded text. */
type Shape =
  | { readonly kind: "one"; readonly text: string }
  | { readonly kind: "list"; readonly items: readonly string[] }
  | { readonly kind: "fields"; readonly pairs: readonly NameValue[] };

/**
 * A path parameter's text (RFC 6570 and OpenAPI 3.1.1, 4.8.12.2). Lists and objects are written as in the style
 * examples there.
 */
export function pathText(name: string, value: unknown, style: WritingStyle): string {
  const encode: Encode = (text) => percentEncode(text);
  const shape = shapeOf(value, style, encode);
  if (style.style === "matrix") return matrixText(encode(name), shape, style.explode);
  const joined = plainText(shape, style.explode, style.style === "label" && style.explode ? "." : ",");
  return style.style === "label" ? `.${joined}` : joined;
}

/** A header parameter's text. Headers are not encoded: the caller checks that the text is one line. */
export function headerText(value: unknown, style: WritingStyle): string {
  return plainText(
    shapeOf(value, style, (text) => text),
    style.explode,
    ",",
  );
}

/**
 * The pairs of a query, a form or a cookie; none for an empty list or object. `deepObject` also writes nested objects
 * with brackets, and lists with `[]`, which the specification leaves open.
 */
export function pairsOf(name: string, value: unknown, style: WritingStyle): NameValue[] {
  const encode: Encode = (text) => percentEncode(text, style.allowReserved === true);
  const key = percentEncode(name);
  if (style.style === "deepObject" && style.json !== true && isMap(value))
    return deepPairs(key, value, encode);
  const shape = shapeOf(value, style, encode);
  if (shape.kind === "one") return [[key, shape.text]];
  if (shape.kind === "list" && shape.items.length === 0) return [];
  if (shape.kind === "fields" && shape.pairs.length === 0) return [];
  const delimiter = { spaceDelimited: "%20", pipeDelimited: "%7C" }[String(style.style)] ?? ",";
  if (style.explode || style.style === "deepObject") {
    if (shape.kind === "fields") return [...shape.pairs];
    return shape.items.map((item): NameValue => [key, item]);
  }
  return [[key, plainText(shape, false, delimiter)]];
}

function deepPairs(key: string, value: Readonly<Record<string, unknown>>, encode: Encode): NameValue[] {
  return Object.entries(value).flatMap(([field, item]): NameValue[] => {
    const inner = `${key}%5B${percentEncode(field)}%5D`;
    if (isMap(item)) return deepPairs(inner, item, encode);
    if (Array.isArray(item)) return item.map((each): NameValue => [inner, encode(scalarText(each))]);
    return [[inner, encode(scalarText(item))]];
  });
}

function matrixText(name: string, shape: Shape, explode: boolean): string {
  if (shape.kind === "one") return shape.text === "" ? `;${name}` : `;${name}=${shape.text}`;
  if (!explode) return `;${name}=${plainText(shape, false, ",")}`;
  const pairs = shape.kind === "list" ? shape.items.map((item): NameValue => [name, item]) : shape.pairs;
  return pairs.map(([key, text]) => (text === "" ? `;${key}` : `;${key}=${text}`)).join("");
}

function plainText(shape: Shape, explode: boolean, delimiter: string): string {
  if (shape.kind === "one") return shape.text;
  if (shape.kind === "list") return shape.items.join(delimiter);
  return shape.pairs
    .map(([key, text]) => (explode ? `${key}=${text}` : `${key}${delimiter}${text}`))
    .join(delimiter);
}

function shapeOf(value: unknown, style: WritingStyle, encode: Encode): Shape {
  if (style.json === true) return { kind: "one", text: encode(JSON.stringify(value)) };
  if (Array.isArray(value)) return { kind: "list", items: value.map((item) => encode(scalarText(item))) };
  if (!isMap(value)) return { kind: "one", text: encode(scalarText(value)) };
  const pairs = Object.entries(value).map(
    ([key, item]): NameValue => [encode(key), encode(scalarText(item))],
  );
  return { kind: "fields", pairs };
}
