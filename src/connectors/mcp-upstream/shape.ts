import type { JsonObject } from "../../agents/index.ts";

/** Whether a value from `JSON.parse` or from the SDK's schemas is an object. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The first characters of a string, without half of a surrogate pair at the end. */
export function firstOf(text: string, characters: number): string {
  if (text.length <= characters) return text;
  const last = text.charCodeAt(characters - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? characters - 1 : characters);
}
