import type { JsonValue } from "./message.ts";

/**
 * What a tool returned, as the model is shown it: text as it is, everything else as JSON has it (undefined is null).
 * Past `limit` characters it becomes text, cut, and says so. @throws TypeError for what JSON cannot hold.
 */
export function toolOutput(value: unknown, limit: number): JsonValue {
  if (typeof value === "string") return cut(value, limit);
  const text = JSON.stringify(value) ?? "null";
  if (text.length > limit) return cut(text, limit);
  // Parsed back, so that the tool keeps no hold of what the conversation says it answered.
  return JSON.parse(text);
}

function cut(text: string, limit: number): string {
  if (text.length <= limit) return text;
  return `${text.slice(0, limit)}\n[cut: the first ${limit} of ${text.length} characters]`;
}
