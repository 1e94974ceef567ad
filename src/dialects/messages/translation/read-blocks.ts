import type { LanguageModelV4FilePart, LanguageModelV4TextPart } from "@ai-sdk/provider";
import {
  base64At,
  booleanAt,
  invalidAt,
  listAt,
  objectAt,
  type ReadonlyMembers,
  textAt,
} from "../../translation/fields.ts";
import { requireMediaType } from "../../translation/media-types.ts";
import type { TranslationTarget } from "../../translation/translation.ts";
import { refuseUnknown, unsupported } from "../../translation/unsupported.ts";
import { fileUrl, imageTypeOf } from "../../translation/urls.ts";
import { memberAt } from "./members.ts";

export type UserPart = LanguageModelV4TextPart | LanguageModelV4FilePart;

const TEXT: ReadonlySet<string> = new Set(["type", "text", "cache_control", "citations"]);
const IMAGE: ReadonlySet<string> = new Set(["type", "source", "cache_control"]);
const DOCUMENT: ReadonlySet<string> = new Set([
  ...["type", "source", "title", "context", "citations", "cache_control"],
]);
const ENCODED_SOURCE: ReadonlySet<string> = new Set(["type", "media_type", "data"]);
const URL_SOURCE: ReadonlySet<string> = new Set(["type", "url"]);
const CONTENT_SOURCE: ReadonlySet<string> = new Set(["type", "content"]);
const UNTRANSLATED = "cannot be translated for this model's provider.";

/** The blocks of the content, with their paths. Plain text is a single block. */
export function readBlocks(
  value: unknown,
  path: string,
): (readonly [block: ReadonlyMembers, path: string])[] {
  if (typeof value === "string") return [[{ type: "text", text: value }, path]];
  return listAt(value, path).map((block, index) => {
    const at = `${path}[${index}]`;
    return [objectAt(block, at), at];
  });
}

/** Citations of an earlier answer are left out: they are for readers, not for the model. */
export function readTextBlock(block: ReadonlyMembers, path: string): LanguageModelV4TextPart {
  if (block.type !== "text") throw unsupported(`${path}.type`, UNTRANSLATED);
  refuseUnknown(block, TEXT, path);
  return { type: "text", text: textAt(block.text, `${path}.text`) };
}

/** Reads text, an image or a document. */
export function readUserParts(block: ReadonlyMembers, path: string, target: TranslationTarget): UserPart[] {
  if (block.type === "image") return [readImage(block, path, target)];
  if (block.type === "document") return readDocument(block, path, target);
  return [readTextBlock(block, path)];
}

function readImage(block: ReadonlyMembers, path: string, target: TranslationTarget): LanguageModelV4FilePart {
  refuseUnknown(block, IMAGE, path);
  const at = `${path}.source`;
  const source = objectAt(block.source, at);
  if (source.type === "base64") {
    return readEncoded(source, at, target, /^image\/[a-z.+-]+$/, "the type of an image");
  }
  if (source.type === "url") {
    return readAddress(source, at, imageTypeOf(textAt(source.url, `${at}.url`)), target);
  }
  throw unsupported(`${at}.type`, UNTRANSLATED);
}

function readDocument(block: ReadonlyMembers, path: string, target: TranslationTarget): UserPart[] {
  refuseUnknown(block, DOCUMENT, path);
  const citations = memberAt(block, "citations", path, objectAt) ?? {};
  if (memberAt(citations, "enabled", `${path}.citations`, booleanAt) === true) {
    throw unsupported(`${path}.citations.enabled`, UNTRANSLATED);
  }
  const title = memberAt(block, "title", path, textAt);
  const context = memberAt(block, "context", path, textAt);
  const about = [
    ...(title === undefined ? [] : [`Title: ${title}`]),
    ...(context === undefined ? [] : [`Context: ${context}`]),
  ].join("\n");
  const parts = readDocumentSource(block, path, target);
  return about === "" ? parts : [{ type: "text", text: `About the next document:\n${about}` }, ...parts];
}

function readDocumentSource(block: ReadonlyMembers, path: string, target: TranslationTarget): UserPart[] {
  const at = `${path}.source`;
  const source = objectAt(block.source, at);
  switch (source.type) {
    case "base64":
      return [readEncoded(source, at, target, /^application\/pdf$/, "application/pdf")];
    case "text":
      refuseUnknown(source, ENCODED_SOURCE, at);
      return [{ type: "text", text: textAt(source.data, `${at}.data`) }];
    case "url":
      return [readAddress(source, at, "application/pdf", target)];
    case "content":
      refuseUnknown(source, CONTENT_SOURCE, at);
      return readBlocks(source.content, `${at}.content`).map(([inner, innerPath]) =>
        inner.type === "image" ? readImage(inner, innerPath, target) : readTextBlock(inner, innerPath),
      );
    default:
      throw unsupported(`${at}.type`, UNTRANSLATED);
  }
}

function readEncoded(
  source: ReadonlyMembers,
  path: string,
  target: TranslationTarget,
  types: RegExp,
  expected: string,
): LanguageModelV4FilePart {
  refuseUnknown(source, ENCODED_SOURCE, path);
  const mediaType = textAt(source.media_type, `${path}.media_type`);
  if (!types.test(mediaType)) throw invalidAt(`${path}.media_type`, `must be ${expected}`);
  requireMediaType(target, mediaType, `${path}.media_type`);
  const data = base64At(source.data, `${path}.data`);
  return { type: "file", mediaType, data: { type: "data", data } };
}

function readAddress(
  source: ReadonlyMembers,
  path: string,
  mediaType: string,
  target: TranslationTarget,
): LanguageModelV4FilePart {
  refuseUnknown(source, URL_SOURCE, path);
  const data = fileUrl(target, textAt(source.url, `${path}.url`), mediaType, `${path}.url`);
  return { type: "file", mediaType, data };
}
