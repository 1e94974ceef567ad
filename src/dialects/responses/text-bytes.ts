import { allTextBytes } from "../json.ts";

/** Members of an item that the model did not write: names, files, and the results of tools that the provider runs. */
const NOT_WRITTEN: ReadonlySet<string> = new Set([
  ...["id", "type", "status", "role", "call_id", "container_id", "server_label", "phase", "namespace"],
  ...["encrypted_content", "result", "results", "output", "outputs", "tools", "annotations", "logprobs"],
  "data",
]);

/**
 * Size in bytes of the text that the model wrote in a response's output. It counts in full, however much it looks
 * like a file.
 */
export function responseTextBytes(output: unknown): number {
  return Array.isArray(output) ? output.reduce((sum: number, item) => sum + writtenBytes(item), 0) : 0;
}

function writtenBytes(item: unknown): number {
  if (typeof item !== "object" || item === null) return allTextBytes(item);
  let bytes = 0;
  for (const [name, value] of Object.entries(item)) {
    if (NOT_WRITTEN.has(name)) continue;
    // Parts of a message or of reasoning have these members too.
    bytes += Array.isArray(value) ? responseTextBytes(value) : allTextBytes(value);
  }
  return bytes;
}
