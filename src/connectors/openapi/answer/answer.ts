import type { JsonObject } from "../../../agents/index.ts";
import { findExcess } from "../../../base/json-limits.ts";
import type { Mask } from "../../../base/masking/mask.ts";
import { ownText } from "../../../base/own-text.ts";
import type { ContentBlock, ToolAnswer } from "../../source.ts";
import { essence, isJson } from "../operations/media-type.ts";
import { type CappedBody, readUpTo } from "./read-up-to.ts";

/** Maximum number of bytes that are read from an answer. */
const MAX_BYTES = 1_024 * 1_024;
/** Maximum number of characters that are passed on from an answer. */
const MAX_TEXT = 1_000_000;
const MAX_ERROR = 4_000;

/**
 * Converts an API's answer to a tool's answer: JSON and other text as text, JSON objects also as structured content,
 * and images, audio and other bytes as separate blocks. JSON beyond the limits is not parsed and stays text. Any
 * status other than a success is an error with the text of its body.
 * @throws as `readUpTo` does
 */
export async function answerOf(
  response: Response,
  url: URL,
  mask: Mask,
  signal: AbortSignal,
): Promise<ToolAnswer> {
  const body = await readUpTo(response, MAX_BYTES, signal);
  const type = response.headers.get("content-type") ?? "";
  if (!response.ok) return { content: [textBlock(failure(response, body, type, mask))], isError: true };
  if (body.bytes.length === 0) return { content: [textBlock(emptiness(response, mask))] };
  const text = textOf(body.bytes, type, body.isCut);
  if (text === undefined) return { content: [bytesBlock(body, type, url, mask)] };
  const isRead = isJson(type) && !body.isCut && findExcess(body.bytes) === null;
  const structured = isRead ? structuredOf(text, mask) : undefined;
  return {
    content: textBlocks(text, body.isCut, mask),
    ...(structured ? { structuredContent: structured } : {}),
  };
}

function textBlocks(text: string, isCut: boolean, mask: Mask): ContentBlock[] {
  const masked = mask.text(text, { end: isCut });
  if (!isCut && masked.length <= MAX_TEXT) return [textBlock(masked)];
  const shown = ownText(masked.slice(0, MAX_TEXT).toWellFormed());
  return [
    textBlock(shown),
    textBlock(`The answer is longer: only its first ${shown.length} characters are shown.`),
  ];
}

function structuredOf(text: string, mask: Mask): JsonObject | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // Declared as JSON but invalid: its text is more informative than a refusal.
    return undefined;
  }
  return isJsonObject(value) ? mask.json(value) : undefined;
}

/** For values returned by JSON.parse. */
function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function failure(response: Response, body: CappedBody, type: string, mask: Mask): string {
  const text = textOf(body.bytes, type, body.isCut);
  const masked = mask.text(text ?? "", { end: body.isCut }).trim();
  const shown = masked.length > MAX_ERROR ? `${masked.slice(0, MAX_ERROR).toWellFormed()}…` : masked;
  const status = `The API answered with status ${statusOf(response, mask)}`;
  return shown === "" ? `${status}.` : `${status}:\n${shown}`;
}

function emptiness(response: Response, mask: Mask): string {
  const location = response.headers.get("location");
  const where = location === null ? "" : ` Location: ${mask.text(location).slice(0, MAX_ERROR)}`;
  return `The API answered with status ${statusOf(response, mask)} and an empty body.${where}`;
}

function statusOf({ status, statusText }: Response, mask: Mask): string {
  return statusText === "" ? String(status) : `${status} ${mask.text(statusText).slice(0, 100)}`;
}

/** Decodes the bytes as text; undefined if they are not text. */
function textOf(bytes: Uint8Array, contentType: string, isCut: boolean): string | undefined {
  const type = essence(contentType);
  const charset = /;\s*charset\s*=\s*"?([\w.:-]+)/i.exec(contentType)?.[1];
  const isText =
    isJson(type) ||
    /^text\/|[/+](?:xml|yaml|x-yaml|javascript|x-www-form-urlencoded|x-ndjson|graphql)$/.test(type);
  // If the answer is cut, an incomplete last character is dropped.
  if (isText || charset !== undefined) return decoderOf(charset).decode(bytes, { stream: isCut });
  if (type !== "") return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: isCut });
  } catch {
    return undefined; // no type and not text: bytes
  }
}

function decoderOf(charset: string | undefined): Pick<TextDecoder, "decode"> {
  try {
    return new TextDecoder((charset ?? "utf-8") as Bun.Encoding);
  } catch {
    return new TextDecoder(); // unknown charset: its ASCII characters can still be read
  }
}

function bytesBlock(body: CappedBody, contentType: string, url: URL, mask: Mask): ContentBlock {
  const mimeType = mask.text(essence(contentType)) || "application/octet-stream";
  const leftOut = (why: string) => textBlock(`The answer is of type ${mimeType} and ${why}. It is omitted.`);
  if (body.isCut) return leftOut(`larger than ${MAX_BYTES} bytes`);
  const data = Buffer.from(body.bytes).toString("base64");
  if (mask.text(data) !== data) return leftOut("contains a secret of the connector");
  if (/^(?:image|audio)\//.test(mimeType)) return { type: mimeType.slice(0, 5), data, mimeType };
  // Without its query, which may carry the connector's secret.
  const uri = mask.text(`${url.origin}${url.pathname}`);
  return { type: "resource", resource: { uri, mimeType, blob: data } };
}

function textBlock(text: string): ContentBlock {
  return { type: "text", text };
}
