import { type JsonMap, own } from "../json.ts";

/**
 * Whether the schema describes bytes, which JSON cannot contain: `format: binary` (3.0), or a media type other than
 * text (3.1).
 */
export function isBinary(schema: JsonMap): boolean {
  if (own(schema, "format") === "binary") return true;
  const mediaType = own(schema, "contentMediaType");
  if (typeof mediaType !== "string" || own(schema, "contentEncoding") !== undefined) return false;
  return (
    own(schema, "type") === undefined || !/^(?:text\/|application\/(?:.*\+)?(?:json|xml)\b)/.test(mediaType)
  );
}
