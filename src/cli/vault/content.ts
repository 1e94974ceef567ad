import { extname } from "node:path";
import type { ContentType } from "../../vault/read/document.ts";
import { parseContentType } from "../../vault/read/media-type.ts";
import { statedTitle } from "../../vault/read/title.ts";

/** A title stands near the top; the rest of a file is read by the gateway, not here. */
const TITLE_CHARACTERS = 65_536;

const BINARY = /^application\/(pdf|vnd\.)/;

/** A file as it is sent. */
export interface FileContent {
  readonly body:
    | { readonly text: string; readonly content_type: string }
    | { readonly content_base64: string; readonly content_type: string };
  /** Hex of SHA-256 over what is sent: the document's `content_hash`, where it holds the same. */
  readonly hash: string;
  readonly title: string;
}

/**
 * Text goes as text where it is UTF-8, without its byte order mark; everything else, and text whose type names a charset,
 * goes as it is.
 * @throws UnreadableDocument for a type that can't be read
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
    // What is wrong with the document the gateway says, and better.
    return null;
  }
}

/** `refund-policy_2026.md` is "Refund policy 2026". */
export function readableName(name: string): string {
  const words = name
    .slice(0, name.length - extname(name).length)
    .replace(/[\s_-]+/g, " ")
    .trim()
    .toWellFormed();
  return words === "" ? name.toWellFormed() : words.charAt(0).toUpperCase() + words.slice(1);
}
