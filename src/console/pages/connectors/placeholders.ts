import type { McpDraft } from "./drafts.ts";

/** `${VAR}`, `${input:id}`, `{{VAR}}`, `<your token>`, `YOUR_API_KEY`: what a client would have put something else for. */
const MARKS =
  /\$\{([^{}]{1,100})\}|\{\{([^{}]{1,100})\}\}|<([^<>]{1,100})>|\b(your[_-][\w-]{1,80}|xxxx+)\b/gi;

/** What stands in `text` in place of a value, each once. */
export function placeholdersIn(text: string): string[] {
  return [...new Set([...text.matchAll(MARKS)].map(([whole]) => whole))];
}

/** What is wrong with a value that was not filled in, in words; undefined where nothing is. */
export function fillIn(text: string, inputs: ReadonlyMap<string, string>): string | undefined {
  const found = placeholdersIn(text);
  if (found.length === 0) return undefined;
  const words = found.slice(0, 5).map((mark) => {
    const id = /^\$\{input:(.+)\}$/i.exec(mark)?.[1];
    const description = id === undefined ? undefined : inputs.get(id);
    return description === undefined ? mark : `${mark} (${description})`;
  });
  return `Fill in: ${words.join(", ")}`;
}

/** By JSON pointer of the request, or its like: where something is left to be filled in. */
export function openFields(
  draft: McpDraft,
  inputs: ReadonlyMap<string, string>,
): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const look = (path: string, text: string) => {
    const words = fillIn(text, inputs);
    if (words !== undefined) found.set(path, words);
  };
  if (draft.type === "stdio") {
    look("/transport/command", draft.command);
    look("/transport/args", draft.args);
  } else {
    look("/transport/url", draft.url);
  }
  for (const { key, value } of draft.type === "stdio" ? draft.env : draft.headers) look(`#${key}`, value);
  return found;
}
