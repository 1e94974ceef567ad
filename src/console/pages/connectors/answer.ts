import { parseJson } from "../../../base/json-limits.ts";

/** A part of a tool's answer, in the form in which it is shown. Never rendered as the type it claims to be. */
export type AnswerPart =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "json"; readonly value: unknown }
  | { readonly kind: "media"; readonly type: string; readonly bytes: number }
  | { readonly kind: "link"; readonly name: string; readonly uri: string; readonly text: string | null };

interface Block {
  readonly type: string;
  readonly [field: string]: unknown;
}

/**
 * Converts MCP content blocks (specification 2025-11-25, `ContentBlock`) and structured content to parts. JSON text
 * is parsed, and text that repeats the structured content is dropped.
 */
export function answerParts(
  content: readonly Block[],
  structured: Readonly<Record<string, unknown>> | null,
): readonly AnswerPart[] {
  const parts = content.map(partOf);
  if (structured === null) return parts;
  const same = JSON.stringify(structured);
  const others = parts.filter((part) => part.kind !== "json" || JSON.stringify(part.value) !== same);
  return [{ kind: "json", value: structured }, ...others];
}

function partOf(block: Block): AnswerPart {
  const { type } = block;
  if (type === "text" && typeof block.text === "string") return textPart(block.text);
  if (type === "image" || type === "audio") {
    return { kind: "media", type: wordOf(block.mimeType) || type, bytes: bytesOf(block.data) };
  }
  if (type === "resource_link") {
    const uri = wordOf(block.uri);
    return { kind: "link", name: wordOf(block.title) || wordOf(block.name) || uri, uri, text: null };
  }
  if (type === "resource" && typeof block.resource === "object" && block.resource !== null) {
    const { uri, text, blob, mimeType } = Object.fromEntries(Object.entries(block.resource));
    if (typeof text === "string") return { kind: "link", name: wordOf(uri), uri: wordOf(uri), text };
    return { kind: "media", type: wordOf(mimeType) || wordOf(uri) || type, bytes: bytesOf(blob) };
  }
  return { kind: "json", value: block };
}

function textPart(text: string): AnswerPart {
  if (!/^\s*[[{]/.test(text)) return { kind: "text", text };
  try {
    return { kind: "json", value: parseJson(text) };
  } catch {
    return { kind: "text", text };
  }
}

function wordOf(value: unknown): string {
  return typeof value === "string" ? value.slice(0, 2_000) : "";
}

/** Decoded length of a base64 string. */
function bytesOf(data: unknown): number {
  if (typeof data !== "string") return 0;
  return Math.max(0, Math.floor((data.length * 3) / 4) - (/=*$/.exec(data.slice(-2))?.[0].length ?? 0));
}

/** `640 bytes`, `12.3 kB`, `4.1 MB`. */
export function bytesText(bytes: number): string {
  if (bytes < 1_000) return `${bytes} bytes`;
  return bytes < 1_000_000 ? `${(bytes / 1_000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
