import type { FilePart } from "../message.ts";
import { bytesOfBase64 } from "./base64.ts";

const TEXT_TYPE = /^(?:text\/[\w.+-]+|application\/(?:json|xml|yaml|[\w.-]+\+(?:json|xml)))(?:\s*;.*)?$/i;

const known = new WeakMap<FilePart, string>();

/**
 * The text of a text file; undefined for any other file. Few providers accept such files, but every model reads text.
 * Bytes that are not UTF-8 become replacement characters.
 */
export function textOfFile(part: FilePart): string | undefined {
  if (!TEXT_TYPE.test(part.mediaType)) return undefined;
  let text = known.get(part);
  if (text === undefined) {
    text = new TextDecoder().decode(bytesOfBase64(part.data));
    known.set(part, text);
  }
  return text;
}
