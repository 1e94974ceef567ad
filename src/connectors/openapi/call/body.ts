import type { BodyBinding, FieldBinding } from "../binding.ts";
import { ArgumentFault, quote } from "../fault.ts";
import { isMap, type JsonMap } from "../json.ts";
import { base64Bytes } from "./base64.ts";
import { percentEncode, scalarText } from "./encode.ts";
import { type MultipartPart, multipart } from "./multipart.ts";
import { type NameValue, pairsOf } from "./style.ts";

/** A body in the form that `fetch` accepts. */
export interface EncodedBody {
  readonly content: string | Uint8Array<ArrayBuffer>;
  readonly type: string;
}

/**
 * Encodes the argument `body` in the operation's media type.
 * @throws ArgumentFault if the value does not fit the media type
 */
export function encodeBody(binding: BodyBinding, value: unknown): EncodedBody {
  const type = binding.mediaType;
  switch (binding.kind) {
    case "json":
      return { content: JSON.stringify(value), type };
    case "text":
      return { content: scalarText(value), type: `${type}; charset=utf-8` };
    case "bytes":
      return { content: base64Bytes(value, "body"), type };
    case "form":
      return { content: formText(fieldsOf(value), binding.fields), type };
    case "multipart":
      return multipart(partsOf(fieldsOf(value), binding.fields));
  }
}

function fieldsOf(value: unknown): JsonMap {
  if (!isMap(value)) throw new ArgumentFault("body must be an object with the fields of the form");
  return value;
}

function formText(values: JsonMap, bindings: Readonly<Record<string, FieldBinding>>): string {
  const pairs = Object.entries(values).flatMap(([name, value]): NameValue[] => {
    if (value === null) return [];
    const writing = bindingOf(bindings, name).writing;
    if (writing) return pairsOf(name, value, writing);
    const items = Array.isArray(value) ? value : [value];
    return items.map((item): NameValue => [percentEncode(name), percentEncode(scalarText(item))]);
  });
  return pairs.map((pair) => pair.join("=")).join("&");
}

/** A list becomes one part per item (RFC 7578, 4.3); objects become JSON. */
function partsOf(values: JsonMap, bindings: Readonly<Record<string, FieldBinding>>): MultipartPart[] {
  const parts: MultipartPart[] = [];
  for (const [name, value] of Object.entries(values)) {
    if (value === null) continue;
    const { binary, mediaType } = bindingOf(bindings, name);
    for (const item of Array.isArray(value) ? value : [value]) {
      const type = mediaType ?? (typeof item === "object" ? "application/json" : undefined);
      if (binary === true) {
        const content = base64Bytes(item, `the field ${quote(name)} of body`);
        parts.push({ name, content, type: type ?? "application/octet-stream", filename: name });
      } else parts.push({ name, content: scalarText(item), ...(type === undefined ? {} : { type }) });
    }
  }
  return parts;
}

function bindingOf(bindings: Readonly<Record<string, FieldBinding>>, name: string): FieldBinding {
  return (Object.hasOwn(bindings, name) ? bindings[name] : undefined) ?? {};
}
