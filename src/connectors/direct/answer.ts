import type { Call } from "../../gate/call.ts";
import type { ToolAnswer } from "../source.ts";

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
export function failedAnswer(message: string): ToolAnswer {
  return { content: [{ type: "text", text: message }], isError: true };
}

/** Refuses a call before anything is sent, with a message that a model can read. */
export async function deny(call: Call, input: string, code: string, words: string): Promise<ToolAnswer> {
  const answer = failedAnswer(words);
  const output = JSON.stringify(answer.content);
  await call.commit(async (_tx, record) => void (await record({ outcome: "denied", code, input, output })));
  return answer;
}
