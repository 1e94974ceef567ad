import { isTextType } from "../agents/model/file-text.ts";
import { FILE_CONTENT } from "../agents/model/request-size.ts";
import { allTextBytes, isEncoded } from "./json.ts";
import { dataOfUrl } from "./translation/urls.ts";

/** A file in a request, found where the dialect carries files. */
export type SentFile =
  /** Sent as base64. */
  | { readonly data: string; readonly mediaType: string | undefined }
  /** Named by an address or an id under which the provider finds it. */
  | "named";

/**
 * Size in bytes that counts for a file that a request names. Only the provider knows how long it is, so it counts as
 * much as the largest file that is sent as data.
 */
export const NAMED_FILE_BYTES = FILE_CONTENT;

/** The file at an address, which may contain the file itself. Nothing if the member has no address. */
export function filesAt(address: unknown): readonly SentFile[] {
  if (typeof address !== "string" || address === "") return [];
  const inline = dataOfUrl(address);
  if (inline) return [inline];
  // Data that is not base64 is text, which counts in full.
  return /^data:/i.test(address) ? [] : ["named"];
}

/**
 * The files named by addresses anywhere in a value. For content whose form only its provider knows: servers that speak
 * a dialect have parts of their own.
 */
export function* addressesIn(value: unknown): Generator<SentFile> {
  if (typeof value === "string") {
    if (isAddress(value)) yield "named";
  } else if (typeof value === "object" && value !== null) {
    for (const inner of Object.values(value)) yield* addressesIn(inner);
  }
}

function isAddress(text: string): boolean {
  return /^\s*[a-z][a-z0-9+.-]*:\/\//i.test(text);
}

/** The file in a member with base64. Some clients write it as a `data:` URL, and some servers take an address. */
export function filesIn(data: unknown, mediaType?: unknown): readonly SentFile[] {
  if (typeof data !== "string") return [];
  if (isAddress(data)) return ["named"];
  const type = typeof mediaType === "string" ? mediaType : undefined;
  return [dataOfUrl(data) ?? { data, mediaType: type }];
}

/** The file with an id of the provider. Nothing if the member has no id. */
export function filesWithId(id: unknown): readonly SentFile[] {
  return id === undefined || id === null || id === "" ? [] : ["named"];
}

/** The bytes that count for the files that are only named. */
export function namedBytesOf(files: Iterable<SentFile>): number {
  let bytes = 0;
  for (const file of files) if (file === "named") bytes += NAMED_FILE_BYTES;
  return bytes;
}

/** The part of a request's size that depends on its files. */
export interface ContentSize {
  /** Size in bytes of the content, files included: the size from which an unreported call is charged. */
  readonly contentBytes: number;
  /** The bytes of it that count for files that the request only names. */
  readonly namedBytes: number;
}

/**
 * Measures what a model reads of a request. Everything counts in full except files: as in tasks, the text of a text
 * file counts, and at most FILE_CONTENT bytes of any other file.
 */
export function contentSizeOf(value: unknown, files: Iterable<SentFile>): ContentSize {
  let contentBytes = writtenBytes(value, 1);
  let namedBytes = 0;
  for (const file of files) {
    if (file === "named") namedBytes += NAMED_FILE_BYTES;
    else contentBytes -= uncountedBytes(file);
  }
  return { contentBytes: contentBytes + namedBytes, namedBytes };
}

/**
 * In the request and its messages, the dialect chooses the names of members, and numbers are options. Below them, in
 * schemas, arguments and content parts, names and numbers may be text that a model reads.
 */
const OWN_LEVELS = 2;

/** @param level of the objects in this value: 1 for the request, 2 for a message or a tool */
function writtenBytes(value: unknown, level: number): number {
  if (typeof value === "string") return Buffer.byteLength(value);
  if (typeof value !== "object" || value === null) return 0;
  if (level > OWN_LEVELS && !Array.isArray(value)) return allTextBytes(value);
  const below = Array.isArray(value) ? level : level + 1;
  let bytes = 0;
  for (const each of Object.values(value)) bytes += writtenBytes(each, below);
  return bytes;
}

/** The bytes of a file's data that do not count. */
function uncountedBytes({ data, mediaType }: Exclude<SentFile, "named">): number {
  if (!isEncoded(data)) return 0;
  // A provider may read a file of unknown type as text.
  const isText = mediaType === undefined || isTextType(mediaType);
  const counted = isText ? Buffer.byteLength(data, "base64") : Math.min(data.length, FILE_CONTENT);
  return data.length - counted;
}
