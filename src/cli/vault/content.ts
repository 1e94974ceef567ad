import { extname } from "node:path";
import { readHtml } from "../vault/read/html.ts";
import { readMarkdown } from "../vault/read/markdown.ts";
import { parseContentType } from "../vault/read/media-type.ts";

/** What a document's body may have (contract, section 3). */
export const BODY_BYTES = 50 * 1024 * 1024;
/** A title stands near the top; the rest of a file is read by the gateway, not here. */
const TITLE_CHARACTERS = 65_536;

const TITLES: Readonly<Record<string, (text: string) => string | null>> = {
  "text/markdown": (text) => readMarkdown(text).title,
  "text/html": (text) => readHtml(text).title,
  "application/xhtml+xml": (text) => readHtml(text, { xhtml: true }).title,
};
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
    title: statedTitle(text, type) ?? readableName(name),
  };
}

function utf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function statedTitle(text: string | undefined, type: string): string | null {
  if (text === undefined) return null;
  try {
    return TITLES[type]?.(text.slice(0, TITLE_CHARACTERS).toWellFormed()) ?? null;
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
