import type { LanguageModelV4FilePart, LanguageModelV4TextPart } from "@ai-sdk/provider";
import { base64At, listAt, objectAt, oneOf, optional, textAt } from "../../translation/fields.ts";
import { requireMediaType } from "../../translation/media-types.ts";
import type { TranslationTarget } from "../../translation/translation.ts";
import { refuseUnknown, unsupported } from "../../translation/unsupported.ts";
import { dataOfUrl, fileUrl, imageTypeOf } from "../../translation/urls.ts";

const TEXT = new Set(["type", "text"]);
const IMAGE = new Set(["type", "image_url"]);
const IMAGE_URL = new Set(["url", "detail"]);
const AUDIO = new Set(["type", "input_audio"]);
const INPUT_AUDIO = new Set(["data", "format"]);
const FILE = new Set(["type", "file"]);
const FILE_DATA = new Set(["file_data", "filename"]);

const AUDIO_TYPES = { wav: "audio/wav", mp3: "audio/mpeg" } as const;

/** The text of a message whose content can only be text. */
export function readTexts(content: unknown, path: string): readonly string[] {
  if (typeof content === "string") return [content];
  return listAt(content, path).map((each, index) => {
    const at = `${path}[${index}]`;
    const part = objectAt(each, at);
    if (part.type !== "text") throw unsupported(`${at}.type`, "must be text here.");
    refuseUnknown(part, TEXT, at);
    return textAt(part.text, `${at}.text`);
  });
}

export function readUserContent(
  content: unknown,
  path: string,
  target: TranslationTarget,
): (LanguageModelV4TextPart | LanguageModelV4FilePart)[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return listAt(content, path).map((each, index) => readPart(each, `${path}[${index}]`, target));
}

function readPart(
  value: unknown,
  path: string,
  target: TranslationTarget,
): LanguageModelV4TextPart | LanguageModelV4FilePart {
  const part = objectAt(value, path);
  switch (part.type) {
    case "text":
      refuseUnknown(part, TEXT, path);
      return { type: "text", text: textAt(part.text, `${path}.text`) };
    case "image_url":
      refuseUnknown(part, IMAGE, path);
      return readImage(part.image_url, `${path}.image_url`, target);
    case "input_audio":
      refuseUnknown(part, AUDIO, path);
      return readAudio(part.input_audio, `${path}.input_audio`, target);
    case "file":
      refuseUnknown(part, FILE, path);
      return readFile(part.file, `${path}.file`, target);
    default:
      throw unsupported(`${path}.type`, "is not a type of content that can be translated.");
  }
}

function readImage(value: unknown, path: string, target: TranslationTarget): LanguageModelV4FilePart {
  const image = objectAt(value, path);
  refuseUnknown(image, IMAGE_URL, path);
  if ((image.detail ?? "auto") !== "auto") {
    throw unsupported(`${path}.detail`, "cannot be translated for this model's provider.");
  }
  const address = textAt(image.url, `${path}.url`);
  const inline = dataOfUrl(address);
  if (inline) {
    requireMediaType(target, inline.mediaType, `${path}.url`);
    const data = base64At(inline.data, `${path}.url`);
    return { type: "file", mediaType: inline.mediaType, data: { type: "data", data } };
  }
  const mediaType = imageTypeOf(address);
  return { type: "file", mediaType, data: fileUrl(target, address, mediaType, `${path}.url`) };
}

function readAudio(value: unknown, path: string, target: TranslationTarget): LanguageModelV4FilePart {
  const audio = objectAt(value, path);
  refuseUnknown(audio, INPUT_AUDIO, path);
  const format = oneOf(audio.format, `${path}.format`, ["wav", "mp3"]);
  requireMediaType(target, AUDIO_TYPES[format], path);
  const data = base64At(audio.data, `${path}.data`);
  return { type: "file", mediaType: AUDIO_TYPES[format], data: { type: "data", data } };
}

function readFile(value: unknown, path: string, target: TranslationTarget): LanguageModelV4FilePart {
  const file = objectAt(value, path);
  // This also refuses `file_id`: it names a file in an account that all workspaces share.
  refuseUnknown(file, FILE_DATA, path);
  const filename = optional(file.filename, `${path}.filename`, textAt);
  const inline = dataOfUrl(textAt(file.file_data, `${path}.file_data`));
  if (!inline) throw unsupported(`${path}.file_data`, "must be a data: URL with base64.");
  requireMediaType(target, inline.mediaType, `${path}.file_data`);
  const data = { type: "data", data: base64At(inline.data, `${path}.file_data`) } as const;
  return {
    ...{ type: "file", mediaType: inline.mediaType, data },
    ...(filename === undefined ? {} : { filename }),
  };
}
