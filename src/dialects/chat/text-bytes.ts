import { allTextBytes, field, isMembers, type Members, textBytesOf } from "../json.ts";
import { DELTA_TEXTS } from "./merge.ts";

const TEXTS: ReadonlySet<string> = new Set(DELTA_TEXTS);
/** The members of a tool call with what the model wrote. */
const CALLED: ReadonlySet<string> = new Set(["function", "custom"]);

/**
 * Size in bytes of the text that the model wrote in a chat completion. It counts in full, however much it looks like
 * a file. Unknown members may contain files, such as audio, and signatures.
 */
export function chatTextBytes(completion: unknown): number {
  const choices = field(completion, "choices");
  if (!Array.isArray(choices)) return 0;
  return choices.reduce((sum: number, choice) => sum + messageBytes(field(choice, "message")), 0);
}

function messageBytes(message: unknown): number {
  if (!isMembers(message)) return 0;
  return sumOf(message, (name, value) => {
    if (name === "tool_calls" && Array.isArray(value)) return totalOf(value, callBytes);
    if (name === "content" && Array.isArray(value)) return totalOf(value, partBytes);
    if (name === "function_call") return writtenBytes(value);
    return TEXTS.has(name) && typeof value === "string" ? allTextBytes(value) : textBytesOf(value);
  });
}

function callBytes(call: unknown): number {
  if (!isMembers(call)) return textBytesOf(call);
  return sumOf(call, (name, value) => (CALLED.has(name) ? writtenBytes(value) : textBytesOf(value)));
}

function partBytes(part: unknown): number {
  if (!isMembers(part)) return textBytesOf(part);
  return sumOf(part, (name, value) =>
    name === "text" && typeof value === "string" ? allTextBytes(value) : textBytesOf(value),
  );
}

/** A tool's name and its arguments, as text or as a value. */
function writtenBytes(called: unknown): number {
  return isMembers(called) ? totalOf(Object.values(called), allTextBytes) : textBytesOf(called);
}

function sumOf(members: Members, bytesOf: (name: string, value: unknown) => number): number {
  return Object.entries(members).reduce((sum, [name, value]) => sum + bytesOf(name, value), 0);
}

function totalOf(values: readonly unknown[], bytesOf: (value: unknown) => number): number {
  return values.reduce((sum: number, value) => sum + bytesOf(value), 0);
}
