import { field, textBytesOf } from "../json.ts";

/** Size in bytes of the text that the model wrote in a chat completion. */
export function chatTextBytes(completion: unknown): number {
  const choices = field(completion, "choices");
  if (!Array.isArray(choices)) return 0;
  return textBytesOf(choices.map((choice) => field(choice, "message") ?? null));
}
