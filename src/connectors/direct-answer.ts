import type { FieldError } from "../base/errors.ts";
import type { ToolAnswer } from "./source.ts";

/** All that the caller is answered: as text alone, where that says it all. */
export function outputOf(answer: ToolAnswer): string {
  const { content, structuredContent } = answer;
  const [{ type, text, ...rest } = { type: "" }, ...others] = content;
  const isText =
    type === "text" && typeof text === "string" && others.length + Object.keys(rest).length === 0;
  const saysAll = structuredContent === undefined || text === JSON.stringify(structuredContent);
  return isText && saysAll ? text : JSON.stringify(answer);
}

/** An answer with `isError`, for a model to read. */
export function failure(message: string): ToolAnswer {
  return { content: [{ type: "text", text: message }], isError: true };
}

/** What a model reads of arguments that do not fit. */
export function wordsOf(faults: readonly FieldError[]): string {
  const list = faults.map(({ path, message }) => `${path || "arguments"}: ${message}`).join("; ");
  return `The arguments are not valid. ${list}`;
}
