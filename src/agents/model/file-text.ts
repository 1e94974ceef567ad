import type { FilePart } from "../message.ts";
import { bytesOfBase64 } from "./base64.ts";

const TEXT_TYPE = /^(?:text\/[\w.+-]+|application\/(?:json|xml|yaml|[\w.-]+\+(?:json|xml)))(?:\s*;.*)?$/i;

/** Whether files of this media type are text. */
export function isTextType(mediaType: string): boolean {
  return TEXT_TYPE.test(mediaType);
}

const known = new WeakMap<FilePart, string>();

/**
 * The text of a text file; undefined for any other file. Few providers accept such files, but every model reads text.
 * Bytes that are not UTF-8 become replacement characters.
 */
export function textOfFile(part: FilePart): string | undefined {
  if (!isTextType(part.mediaType)) return undefined;
  let text = known.get(part);
  if (text === undefined) {
    text = new TextDecoder().decode(bytesOfBase64(part.data));
    known.set(part, text);
  }
  return text;
}
