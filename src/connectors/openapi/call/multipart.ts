import { createHash } from "node:crypto";

/** One part of a form. */
export interface MultipartPart {
  readonly name: string;
  readonly content: string | Uint8Array;
  /** Undefined for text. */
  readonly type?: string;
  readonly filename?: string;
}

export interface Multipart {
  readonly content: Uint8Array<ArrayBuffer>;
  /** Includes the boundary. */
  readonly type: string;
}

/**
 * Encodes `multipart/form-data` (RFC 7578). `FormData` gives a part with its own type an empty file name, which
 * servers treat as a file input left empty. The boundary is a hash of the content, so the content cannot contain it.
 */
export function multipart(parts: readonly MultipartPart[]): Multipart {
  const heads = parts.map(headOf);
  const hash = createHash("sha256");
  for (const [index, { content }] of parts.entries()) hash.update(heads[index] ?? "").update(content);
  const boundary = `gatehouse-${hash.digest("hex").slice(0, 40)}`;
  const pieces = parts.flatMap(({ content }, index) => [
    Buffer.from(`--${boundary}\r\n${heads[index]}\r\n\r\n`),
    Buffer.from(content),
    Buffer.from("\r\n"),
  ]);
  const content = Uint8Array.from(Buffer.concat([...pieces, Buffer.from(`--${boundary}--\r\n`)]));
  return { content, type: `multipart/form-data; boundary=${boundary}` };
}

function headOf({ name, type, filename }: MultipartPart): string {
  const file = filename === undefined ? "" : `; filename="${escaped(filename)}"`;
  const line = `Content-Disposition: form-data; name="${escaped(name)}"${file}`;
  return type === undefined ? line : `${line}\r\nContent-Type: ${type}`;
}

/** As browsers do it (HTML standard, "multipart/form-data encoding algorithm"). */
function escaped(name: string): string {
  return name.replaceAll("\n", "%0A").replaceAll("\r", "%0D").replaceAll('"', "%22");
}
