import type { TranslationTarget } from "./translation.ts";
import { unsupported } from "./unsupported.ts";

const OFFICE = "vnd\\.openxmlformats-officedocument\\.(?:wordprocessingml\\.document|spreadsheetml\\.sheet)";

/**
 * The media types of the files that can be sent as data to each kind of provider. Google's APIs take any type. The AI
 * SDK refuses others only when it sends the request, without naming the field, or leaves them out of a tool's result.
 */
const ACCEPTED: Readonly<Record<string, RegExp>> = {
  openai: /^(?:image\/.+|application\/pdf)$/,
  azure: /^(?:image\/.+|application\/pdf)$/,
  "openai-compatible": /^(?:(?:image|video|text)\/.+|audio\/(?:wav|mp3|mpeg)|application\/pdf)$/,
  anthropic: /^(?:image\/.+|application\/pdf|text\/plain)$/,
  bedrock: new RegExp(
    `^(?:image/(?:jpeg|png|gif|webp)|text/(?:csv|html|plain|markdown)|application/(?:pdf|msword|vnd\\.ms-excel|${OFFICE})|` +
      "video/(?:x-matroska|quicktime|mp4|webm|x-flv|mpeg|mpg|wmv|x-ms-wmv|3gpp))$",
  ),
  builtin: /^text\//,
};

/**
 * Checks that a file of this type can be sent as data to a kind of provider.
 * @param path where the file is in the request
 * @throws Problem 400 `unsupported_parameter`
 */
export function requireMediaType(
  { kind }: Pick<TranslationTarget, "kind">,
  mediaType: string,
  path: string,
): void {
  if (ACCEPTED[kind]?.test(mediaType) === false) {
    throw unsupported(path, `has the type ${mediaType}, which this model's provider does not accept.`);
  }
}
