import { textBytesOf } from "../json.ts";

/** Members of an item that the model did not write: names, and the results of tools that the provider runs. */
const NOT_WRITTEN: ReadonlySet<string> = new Set([
  ...["id", "type", "status", "role", "call_id", "container_id", "server_label", "phase", "namespace"],
  ...["encrypted_content", "result", "results", "output", "outputs", "tools", "annotations", "logprobs"],
]);

/** Size in bytes of the text that the model wrote in a response's output. */
export function responseTextBytes(output: unknown): number {
  return Array.isArray(output) ? textBytesOf(output.map(writtenIn)) : 0;
}

function writtenIn(item: unknown): unknown {
  if (typeof item !== "object" || item === null) return null;
  const written = Object.entries(item).filter(([name]) => !NOT_WRITTEN.has(name));
  // Parts of a message or of reasoning have these members too.
  return written.map(([, value]) => (Array.isArray(value) ? value.map(writtenIn) : value));
}
