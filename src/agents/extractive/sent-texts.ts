import {
  type LanguageModelV4FilePart,
  type LanguageModelV4Prompt,
  UnsupportedFunctionalityError,
} from "@ai-sdk/provider";
import { bytesOfBase64 } from "../model/base64.ts";
import type { SourcePassage } from "./rank.ts";

/** A question and the texts that were sent with it. */
export interface PromptTexts {
  readonly question: string;
  readonly passages: readonly SourcePassage[];
}

/**
 * The maximum number of characters searched, starting with the latest. Searching a million takes a second, during
 * which nothing else runs.
 */
const MOST_CHARACTERS = 131_072;

/**
 * The texts that a client sent besides its question: instructions, earlier user messages and documents. The question
 * is the last line of the last user message that ends with a question mark, or otherwise its last line.
 * @throws UnsupportedFunctionalityError for files other than plain text
 */
export function sentTexts(prompt: LanguageModelV4Prompt): PromptTexts {
  let question: string | undefined;
  let left = MOST_CHARACTERS;
  const passages: SourcePassage[] = [];
  const add = (text: string, source: string): void => {
    const searched = text.slice(0, left);
    left -= searched.length;
    if (searched.trim() !== "") passages.push({ text: searched, source });
  };
  for (const [index, message] of [...prompt.entries()].reverse()) {
    const source = `message ${index + 1} (${message.role})`;
    if (message.role === "system") add(message.content, source);
    if (message.role !== "user") continue;
    const text = message.content.map((part) => (part.type === "text" ? part.text : "")).join("\n");
    if (question === undefined) {
      const asked = questionOf(text);
      question = asked.question;
      add(asked.rest, source);
    } else add(text, source);
    for (const part of message.content) {
      if (part.type === "file") add(textOf(part, left), part.filename ?? source);
    }
  }
  return { question: question ?? "", passages };
}

function questionOf(text: string): { readonly question: string; readonly rest: string } {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const marked = lines.findLastIndex((line) => /[?？]$/u.test(line.trimEnd()));
  const at = marked < 0 ? lines.length - 1 : marked;
  return { question: lines[at] ?? "", rest: lines.filter((_, index) => index !== at).join("\n") };
}

/** The beginning of a document in plain text. */
function textOf({ mediaType, data }: LanguageModelV4FilePart, most: number): string {
  if (data.type === "text") return data.text;
  if (data.type !== "data" || !mediaType.startsWith("text/")) {
    throw new UnsupportedFunctionalityError({
      functionality: `a file of the type ${mediaType}: builtin/extractive reads only text`,
    });
  }
  return new TextDecoder().decode(typeof data.data === "string" ? bytesOf(data.data, most) : data.data);
}

/** @param most how many bytes are enough */
function bytesOf(base64: string, most: number): Uint8Array {
  // Four characters encode three bytes.
  return bytesOfBase64(base64.slice(0, Math.ceil(most / 3) * 4));
}
