import { field, textBytesOf } from "../json.ts";

/**
 * Size in bytes of the text that the model wrote in a message's content: without signatures, encrypted thinking and
 * the results of tools that the provider runs.
 */
export function messageTextBytes(content: unknown): number {
  if (!Array.isArray(content)) return 0;
  return textBytesOf(
    content.filter(isWritten).map(({ type: _, signature: __, data: ___, ...block }) => block),
  );
}

function isWritten(block: unknown): block is Record<string, unknown> {
  if (typeof block !== "object" || block === null) return false;
  return !String(field(block, "type")).endsWith("_tool_result");
}
