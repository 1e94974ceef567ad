import type { JsonSchema } from "../../agents/index.ts";

/** A part of a message, in the form used in requests. */
export type InputPart =
  | { readonly type: "text"; readonly text: string }
  /** `data`: base64. */
  | { readonly type: "image" | "file"; readonly media_type: string; readonly data: string }
  /** A document in the vault, whose text is sent. Its media type is only stored. */
  | { readonly type: "file"; readonly document: string; readonly media_type?: string };

export interface InputMessage {
  readonly role: "user" | "assistant";
  readonly content: string | readonly InputPart[];
}

/** A task's input: a prompt or messages, and the form of the answer. */
export interface TaskInput {
  readonly prompt: string | null;
  readonly messages: readonly InputMessage[] | null;
  /** Null if the answer is text. */
  readonly outputSchema: JsonSchema | null;
}

/** How a task's input is stored as the payload of its dispatch: the prompt itself (null), or everything as JSON. */
export type InputForm = "json" | null;

export interface StoredInput {
  readonly form: InputForm;
  readonly text: string;
}

export function storedInput({ prompt, messages, outputSchema }: TaskInput): StoredInput {
  if (prompt !== null && outputSchema === null) return { form: null, text: prompt };
  const stored = { prompt: prompt ?? undefined, messages: messages ?? undefined };
  return { form: "json", text: JSON.stringify({ ...stored, output_schema: outputSchema ?? undefined }) };
}

export function readInput({ form, text }: StoredInput): TaskInput {
  if (form === null) return { prompt: text, messages: null, outputSchema: null };
  const { prompt, messages, output_schema } = JSON.parse(text) as {
    readonly prompt?: string;
    readonly messages?: readonly InputMessage[];
    readonly output_schema?: JsonSchema;
  };
  return { prompt: prompt ?? null, messages: messages ?? null, outputSchema: output_schema ?? null };
}

/** The ids of all documents that messages name, each with its location in the request (RFC 6901). */
export function documentsOf(
  messages: readonly InputMessage[] | null,
): readonly { readonly id: string; readonly path: string }[] {
  return (messages ?? []).flatMap(({ content }, at) =>
    typeof content === "string"
      ? []
      : content.flatMap((part, index) =>
          "document" in part
            ? [{ id: part.document, path: `/messages/${at}/content/${index}/document` }]
            : [],
        ),
  );
}
