import type { JsonValue } from "../message.ts";

/**
 * A tool's return value as shown to the model: text unchanged, everything else as in JSON (undefined is null). Beyond
 * `limit` characters it becomes truncated text with a note.
 * @throws TypeError if JSON cannot represent the value
 */
export function toolOutput(value: unknown, limit: number): JsonValue {
  if (typeof value === "string") return cut(value, limit);
  const text = JSON.stringify(value) ?? "null";
  if (text.length > limit) return cut(text, limit);
  // Parsed again, so that later changes by the tool do not affect the conversation.
  return JSON.parse(text);
}

function cut(text: string, limit: number): string {
  if (text.length <= limit) return text;
  return `${text.slice(0, limit)}\n[cut: the first ${limit} of ${text.length} characters]`;
}
