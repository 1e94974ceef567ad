import type { BodyBinding, FieldBinding, WritingStyle } from "../binding.ts";
import { DocumentFault, quote } from "../fault.ts";
import { isMap, type JsonMap, own, ownBoolean, ownMap, ownText } from "../json.ts";
import type { References } from "../references.ts";
import { isBinary } from "../schema/binary.ts";
import type { Argument } from "../schema/input.ts";
import { bodyKind, concrete } from "./media-type.ts";
import type { ApiOperation } from "./operation.ts";

/** The argument that becomes the request's body. */
export const BODY_ARGUMENT = "body";
const STYLES = ["form", "spaceDelimited", "pipeDelimited", "deepObject"] as const;
/** A single type, not a range: it is written into a header of the form's part. */
const MEDIA_TYPE = /^[\w.+-]{1,60}\/[\w.+-]{1,60}(?:;[\w.+= -]{1,60})?$/;
/** Maximum number of fields of one form. */
const MAX_FIELDS = 1_000;

export interface BodyArgument {
  readonly binding: BodyBinding;
  readonly argument: Argument;
}

/**
 * An operation's body in the first of its media types that can be encoded; null if it has no body.
 * @throws DocumentFault if a body is required and none of its types can be encoded
 */
export function takeBody({ fields, method }: ApiOperation, references: References): BodyArgument | null {
  const declared = references.follow(own(fields, "requestBody"));
  if (!declared) return null;
  const required = ownBoolean(declared, "required") === true;
  // RFC 9110, 9.3.1: a body has no meaning there, and `fetch` sends none.
  const types =
    method === "GET" || method === "HEAD" ? [] : Object.entries(ownMap(declared, "content") ?? {});
  for (const [type, value] of types) {
    const kind = bodyKind(type);
    const media = references.follow(value);
    if (kind === undefined || !media) continue;
    return {
      binding: { kind, mediaType: concrete(type), fields: fieldsOf(kind, media, references) },
      argument: {
        name: BODY_ARGUMENT,
        schema: kind === "bytes" ? { type: "string", format: "binary" } : (own(media, "schema") ?? {}),
        description: ownText(declared, "description"),
        required,
      },
    };
  }
  if (!required) return null;
  const names = types.map(([type]) => quote(type)).join(", ");
  throw new DocumentFault(
    names === ""
      ? "it requires a body, but its method cannot have one"
      : `it requires a body of type ${names}, which is not supported`,
  );
}

function fieldsOf(
  kind: BodyBinding["kind"],
  media: JsonMap,
  references: References,
): Record<string, FieldBinding> {
  if (kind !== "form" && kind !== "multipart") return {};
  const encodings = ownMap(media, "encoding") ?? {};
  const properties = ownMap(references.follow(own(media, "schema")) ?? {}, "properties") ?? {};
  const names = new Set([...Object.keys(encodings), ...Object.keys(properties)]);
  if (names.size > MAX_FIELDS) throw new DocumentFault(`its form has more than ${MAX_FIELDS} fields`);
  const found: [string, FieldBinding][] = [];
  for (const name of names) {
    const encoding = ownMap(encodings, name) ?? {};
    const schema = references.follow(own(properties, name)) ?? {};
    const binary = kind === "multipart" && isBinaryField(schema, references);
    const mediaType = ownText(encoding, "contentType")?.split(",", 1)[0]?.trim();
    const writing = writingOf(encoding);
    const field: FieldBinding = {
      ...(binary ? { binary } : {}),
      ...(mediaType !== undefined && MEDIA_TYPE.test(mediaType) ? { mediaType } : {}),
      ...(writing ? { writing } : {}),
    };
    if (Object.keys(field).length > 0) found.push([name, field]);
  }
  return Object.fromEntries(found);
}

function isBinaryField(schema: JsonMap, references: References): boolean {
  if (isBinary(schema)) return true;
  const items = own(schema, "items");
  return isMap(items) && isBinary(references.follow(items) ?? {});
}

/** Undefined if unspecified: simple values are sent as text, lists repeated, objects as JSON (3.1.1, 4.8.15.1.1). */
function writingOf(encoding: JsonMap): WritingStyle | undefined {
  const given = own(encoding, "style");
  const explode = ownBoolean(encoding, "explode");
  const allowReserved = ownBoolean(encoding, "allowReserved") === true;
  if (given === undefined && explode === undefined && !allowReserved) return undefined;
  const style = STYLES.find((each) => each === given) ?? "form";
  return { style, explode: explode ?? style === "form", ...(allowReserved ? { allowReserved } : {}) };
}
