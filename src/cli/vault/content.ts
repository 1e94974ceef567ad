import { extname } from "node:path";
import type { ContentType } from "../../vault/read/document.ts";
import { parseContentType } from "../../vault/read/media-type.ts";
import { statedTitle } from "../../vault/read/title.ts";

/** Titles are near the top; the gateway reads the rest. */
const TITLE_CHARACTERS = 65_536;

const BINARY = /^application\/(pdf|vnd\.)/;

/** A file's content as it is sent. */
export interface FileContent {
  readonly body:
    | { readonly text: string; readonly content_type: string }
    | { readonly content_base64: string; readonly content_type: string };
  /** SHA-256 of the content in hex: equal to the document's `content_hash` if unchanged. */
  readonly hash: string;
  readonly title: string;
}

/**
 * UTF-8 text is sent as text without its byte order mark. Everything else, and text whose type names a charset, is
 * sent as bytes.
 * @throws UnreadableDocument for an unsupported type
 */
export function contentOf(name: string, bytes: Uint8Array, contentType: string): FileContent {
  const { type, charset } = parseContentType(contentType);
  const text = BINARY.test(type) || charset !== null ? undefined : utf8(bytes);
  const body =
    text === undefined
      ? { content_base64: Buffer.from(bytes).toString("base64"), content_type: contentType }
      : { text, content_type: contentType };
  return {
    body,
    hash: new Bun.CryptoHasher("sha256").update(text ?? bytes).digest("hex"),
    title: titleIn(text, type) ?? readableName(name),
  };
}

function utf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function titleIn(text: string | undefined, type: ContentType): string | null {
  if (text === undefined) return null;
  try {
    return statedTitle(text.slice(0, TITLE_CHARACTERS).toWellFormed(), type);
  } catch {
    // The gateway reports problems with the document more clearly.
    return null;
  }
}

/** `refund-policy_2026.md` becomes "Refund policy 2026". */
export function readableName(name: string): string {
  const words = name
    .slice(0, name.length - extname(name).length)
    .replace(/[\s_-]+/g, " ")
    .trim()
    .toWellFormed();
  return words === "" ? name.toWellFormed() : words.charAt(0).toUpperCase() + words.slice(1);
}
