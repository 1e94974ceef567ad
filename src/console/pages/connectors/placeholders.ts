import type { McpDraft } from "./drafts.ts";

/** `${VAR}`, `${input:id}`, `{{VAR}}`, `<your token>`, `YOUR_API_KEY`: placeholders that a client would replace. */
const MARKS =
  /\$\{([^{}]{1,100})\}|\{\{([^{}]{1,100})\}\}|<([^<>]{1,100})>|\b(your[_-][\w-]{1,80}|xxxx+)\b/gi;

/** The distinct placeholders in `text`. */
function placeholdersIn(text: string): string[] {
  return [...new Set([...text.matchAll(MARKS)].map(([whole]) => whole))];
}

/** Asks for the missing value in words; undefined if nothing is missing. */
function fillIn(text: string, inputs: ReadonlyMap<string, string>): string | undefined {
  const found = placeholdersIn(text);
  if (found.length === 0) return undefined;
  const words = found.slice(0, 5).map((mark) => {
    const id = /^\$\{input:(.+)\}$/i.exec(mark)?.[1];
    const description = id === undefined ? undefined : inputs.get(id);
    return description === undefined ? mark : `${mark} (${description})`;
  });
  return `Fill in: ${words.join(", ")}`;
}

/** Unfilled fields, by JSON pointer of the request. */
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
