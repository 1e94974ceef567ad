import { allTextBytes, field, textBytesOf } from "../json.ts";

/**
 * Size in bytes of the text that the model wrote in a message's content: without signatures, encrypted thinking and
 * the results of tools that the provider runs. It counts in full, however much it looks like a file.
 */
export function messageTextBytes(content: unknown): number {
  if (!Array.isArray(content)) return 0;
  return content.filter(isWritten).reduce((sum: number, block) => sum + blockBytes(block), 0);
}

function blockBytes(block: Record<string, unknown>): number {
  const { type: _, signature: __, data: ___, text, thinking, input, ...rest } = block;
  const written = [text, thinking, input].reduce((sum: number, value) => sum + allTextBytes(value), 0);
  return written + textBytesOf(rest);
}

function isWritten(block: unknown): block is Record<string, unknown> {
  if (typeof block !== "object" || block === null) return false;
  return !String(field(block, "type")).endsWith("_tool_result");
}
