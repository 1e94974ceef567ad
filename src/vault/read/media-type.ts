import { CONTENT_TYPES, type ContentType } from "./document.ts";
import { Fault, UnreadableDocument } from "./fault.ts";

export interface MediaType {
  readonly type: ContentType;
  readonly charset: string | null;
}

/**
 * Parses a Content-Type (RFC 9110, section 8.3.1), with parameters and in any case. Only `charset` is kept.
 * @throws UnreadableDocument for an unsupported type
 */
export function parseContentType(value: string): MediaType {
  const [essence = "", ...parameters] = value.split(";");
  const name = essence.trim().toLowerCase();
  const type = CONTENT_TYPES.find((known) => known === name);
  if (type === undefined) {
    const shown = name.slice(0, 100).toWellFormed();
    throw new UnreadableDocument(
      "/content_type",
      `"${shown}" is not supported: use one of ${CONTENT_TYPES.join(", ")}`,
    );
  }
  for (const parameter of parameters) {
    const [key = "", charset = ""] = parameter.split("=", 2);
    if (key.trim().toLowerCase() !== "charset") continue;
    return { type, charset: charset.trim().replace(/^"(.*)"$/u, "$1") };
  }
  return { type, charset: null };
}

/**
 * A byte order mark identifies the encoding more reliably than any header. For HTML, the first 1,024 bytes may name
 * it.
 */
const HTML_CHARSET = /<meta[^>]{0,200}?charset\s{0,9}=\s{0,9}["']?([\w:-]{1,40})/iu;

/**
 * Decodes bytes in the named charset, otherwise in the one they declare, otherwise as UTF-8. Removes the byte order
 * mark.
 * @throws Fault if the bytes are invalid in that charset, UnreadableDocument if it is unknown
 */
export function decodeText(bytes: Uint8Array, { type, charset }: MediaType): string {
  const html = type === "text/html" || type === "application/xhtml+xml";
  const label = byteOrderMark(bytes) ?? charset ?? (html ? metaCharset(bytes) : null) ?? "utf-8";
  const decoder = decoderFor(label);
  try {
    return decoder.decode(bytes);
  } catch (cause) {
    const hint =
      label === "utf-8" ? ', or name its charset in the content type ("text/plain; charset=...")' : "";
    throw new Fault(`is not valid ${label.toUpperCase()}: send it in UTF-8${hint}`, { cause });
  }
}

function byteOrderMark([first, second]: Uint8Array): string | null {
  if (first === 0xff && second === 0xfe) return "utf-16le";
  if (first === 0xfe && second === 0xff) return "utf-16be";
  return null;
}

function metaCharset(bytes: Uint8Array): string | null {
  const head = new TextDecoder("windows-1252").decode(bytes.subarray(0, 1_024));
  const label = HTML_CHARSET.exec(head)?.[1] ?? null;
  // A page whose <meta> could be read byte by byte is not in UTF-16, whatever it declares (HTML, "prescan a byte
  // stream").
  return label === null || /^utf-?16/iu.test(label) || !isKnown(label) ? null : label;
}

function isKnown(label: string): boolean {
  try {
    return new TextDecoder(label as Bun.Encoding) !== undefined;
  } catch {
    return false;
  }
}

function decoderFor(label: string): TextDecoder {
  try {
    return new TextDecoder(label as Bun.Encoding, { fatal: true });
  } catch (cause) {
    const shown = label.slice(0, 100).toWellFormed();
    throw new UnreadableDocument("/content_type", `names the unknown charset "${shown}": send UTF-8`, {
      cause,
    });
  }
}
