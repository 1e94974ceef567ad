import type { FieldError } from "../base/errors.ts";
import type { Call } from "../gate/call.ts";
import type { ToolAnswer } from "./source.ts";

/** The whole answer for the caller: plain text if it consists only of text. */
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

/** Describes invalid arguments to a model. */
export function wordsOf(faults: readonly FieldError[]): string {
  const list = faults.map(({ path, message }) => `${path || "arguments"}: ${message}`).join("; ");
  return `The arguments are not valid. ${list}`;
}

/** Refuses a call before anything is sent, with a message that a model can read. */
export async function deny(call: Call, input: string, code: string, words: string): Promise<ToolAnswer> {
  const answer = failure(words);
  const output = JSON.stringify(answer.content);
  await call.commit(async (_tx, record) => void (await record({ outcome: "denied", code, input, output })));
  return answer;
}
