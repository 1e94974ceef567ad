import type { BodyBinding } from "../binding.ts";

/** `application/json; charset=utf-8` → `application/json` */
export function essence(mediaType: string): string {
  return (mediaType.split(";", 1)[0] ?? "").trim().toLowerCase();
}

export function isJson(mediaType: string): boolean {
  const type = essence(mediaType);
  return (
    type === "application/json" || type === "text/json" || /^[a-z]+\/[a-z0-9!#$&^_.+-]+\+json$/.test(type)
  );
}

/** How a body of this type is encoded; undefined if the type is not supported. */
export function bodyKind(mediaType: string): BodyBinding["kind"] | undefined {
  const type = essence(mediaType);
  if (isJson(type) || type === "*/*" || type === "application/*") return "json";
  if (type === "application/x-www-form-urlencoded") return "form";
  if (type === "multipart/form-data") return "multipart";
  if (type === "application/octet-stream") return "bytes";
  if (type === "text/plain" || type === "text/*") return "text";
  return undefined;
}

/** The type to send for a media type of the document, which may be a range. */
export function concrete(mediaType: string): string {
  const type = essence(mediaType);
  if (type === "text/*") return "text/plain";
  return type.includes("*") ? "application/json" : type;
}
