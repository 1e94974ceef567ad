import type { LanguageModelV4FilePart, LanguageModelV4TextPart } from "@ai-sdk/provider";
import {
  base64At,
  listAt,
  objectAt,
  optional,
  type ReadonlyMembers,
  textAt,
} from "../../translation/fields.ts";
import { requireMediaType } from "../../translation/media-types.ts";
import type { TranslationTarget } from "../../translation/translation.ts";
import { refuseUnknown, unsupported } from "../../translation/unsupported.ts";
import { dataOfUrl, fileUrl, imageTypeOf } from "../../translation/urls.ts";

export type ContentPart = LanguageModelV4TextPart | LanguageModelV4FilePart;
/** The part of the target model's description that content readers use. */
export type ContentTarget = Pick<TranslationTarget, "kind" | "supportedUrls">;

const TEXT: ReadonlySet<string> = new Set(["type", "text", "annotations", "logprobs", "phase"]);
const REFUSAL: ReadonlySet<string> = new Set(["type", "refusal"]);
// `file_id` is not among them: it names a file in an account that all workspaces share.
const IMAGE: ReadonlySet<string> = new Set(["type", "image_url", "detail"]);
const FILE: ReadonlySet<string> = new Set(["type", "file_data", "file_url", "filename", "detail"]);

/** The text of content that can only be text. */
export function readTexts(content: unknown, path: string): readonly string[] {
  if (typeof content === "string") return [content];
  return listAt(content, path).map((each, index) => {
    const at = `${path}[${index}]`;
    const part = objectAt(each, at);
    if (part.type === "refusal") {
      refuseUnknown(part, REFUSAL, at);
      return textAt(part.refusal, `${at}.refusal`);
    }
    if (!isText(part)) throw unsupported(`${at}.type`, "must be text here.");
    return readText(part, at);
  });
}

/** The content of a user or a tool. */
export function readContent(content: unknown, path: string, target: ContentTarget): ContentPart[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return listAt(content, path).map((each, index) => readPart(each, `${path}[${index}]`, target));
}

function readPart(value: unknown, path: string, target: ContentTarget): ContentPart {
  const part = objectAt(value, path);
  if (isText(part)) return { type: "text", text: readText(part, path) };
  if (part.type === "input_image") return readImage(part, path, target);
  if (part.type === "input_file") return readFile(part, path, target);
  throw unsupported(`${path}.type`, "is not a type of content that can be translated.");
}

function isText({ type }: ReadonlyMembers): boolean {
  return type === "input_text" || type === "output_text" || type === "text";
}

/** Parts of an answer's text that are only for people are not sent again. */
function readText(part: ReadonlyMembers, path: string): string {
  refuseUnknown(part, TEXT, path);
  return textAt(part.text, `${path}.text`);
}

function readImage(image: ReadonlyMembers, path: string, target: ContentTarget): LanguageModelV4FilePart {
  refuseUnknown(image, IMAGE, path);
  requireNoDetail(image, path);
  const address = textAt(image.image_url, `${path}.image_url`);
  const inline = dataOfUrl(address);
  if (inline) return inlineFile(inline, `${path}.image_url`, target);
  const mediaType = imageTypeOf(address);
  return { type: "file", mediaType, data: fileUrl(target, address, mediaType, `${path}.image_url`) };
}

function readFile(file: ReadonlyMembers, path: string, target: ContentTarget): LanguageModelV4FilePart {
  refuseUnknown(file, FILE, path);
  requireNoDetail(file, path);
  const filename = optional(file.filename, `${path}.filename`, textAt);
  const named = filename === undefined ? {} : { filename };
  const address = optional(file.file_url, `${path}.file_url`, textAt);
  if (address !== undefined) {
    const mediaType = "application/pdf";
    const data = fileUrl(target, address, mediaType, `${path}.file_url`);
    return { type: "file", mediaType, data, ...named };
  }
  const inline = dataOfUrl(textAt(file.file_data, `${path}.file_data`));
  if (!inline) throw unsupported(`${path}.file_data`, "must be a data: URL with base64.");
  return { ...inlineFile(inline, `${path}.file_data`, target), ...named };
}

function inlineFile(
  { mediaType, data }: { readonly mediaType: string; readonly data: string },
  path: string,
  target: ContentTarget,
): LanguageModelV4FilePart {
  requireMediaType(target, mediaType, path);
  return { type: "file", mediaType, data: { type: "data", data: base64At(data, path) } };
}

function requireNoDetail({ detail }: ReadonlyMembers, path: string): void {
  if ((detail ?? "auto") === "auto") return;
  throw unsupported(`${path}.detail`, "cannot be translated for this model's provider.");
}
