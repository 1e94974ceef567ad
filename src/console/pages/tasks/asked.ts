import type { Task } from "../../../http/api.ts";

export type TaskMessage = NonNullable<NonNullable<Task["messages"]>>[number];
export type TaskPart = Exclude<TaskMessage["content"], string>[number];

/** The last text that a task was given; empty if it was only given files; null if erased. */
export function askedText({ prompt, messages }: Pick<Task, "prompt" | "messages">): string | null {
  if (prompt !== null) return prompt;
  const content = messages?.at(-1)?.content;
  if (content === undefined || typeof content === "string") return content ?? null;
  return content.flatMap((part) => ("text" in part ? [part.text] : [])).join("\n\n");
}

/** The parts of a message; a plain string is one part. */
export function partsOf({ content }: TaskMessage): readonly TaskPart[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}
