import type { Message, UserPart } from "../../agents/index.ts";
import type { DocumentText } from "./documents.ts";
import type { InputMessage, InputPart, TaskInput } from "./task-input.ts";

/** The text that a model reads in place of a document that is no longer available. */
const NO_DOCUMENT = "[A document was here that is no longer available.]";

/** A task's input, as messages for the framework. A document that is missing from `documents` is left out. */
export function messagesOf(
  { prompt, messages }: TaskInput,
  documents: ReadonlyMap<string, DocumentText>,
): readonly Message[] {
  if (messages === null) return [{ role: "user", text: prompt ?? "" }];
  return messages.map((message) => toMessage(message, documents));
}

function toMessage({ role, content }: InputMessage, documents: ReadonlyMap<string, DocumentText>): Message {
  if (role === "assistant") return { role, text: textOf(content), toolCalls: [] };
  if (typeof content === "string") return { role, text: content };
  return { role, text: "", parts: content.map((part) => toPart(part, documents)) };
}

/** An assistant's message has only text. */
function textOf(content: InputMessage["content"]): string {
  if (typeof content === "string") return content;
  return content.map((part) => (part.type === "text" ? part.text : "")).join("\n\n");
}

function toPart(part: InputPart, documents: ReadonlyMap<string, DocumentText>): UserPart {
  if (part.type === "text") return { type: "text", text: part.text };
  if ("data" in part) return { type: "file", mediaType: part.media_type, data: part.data };
  const document = documents.get(part.document);
  if (!document) return { type: "text", text: NO_DOCUMENT };
  return { type: "text", text: `Document ${JSON.stringify(document.title)}:\n\n${document.text}` };
}
