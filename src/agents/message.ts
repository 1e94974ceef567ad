import type { JSONObject, JSONValue } from "@ai-sdk/provider";

/** Any value that survives `JSON.stringify` and `JSON.parse`. */
export type JsonValue = JSONValue;
export type JsonObject = JSONObject;

/** `unknown`: the call was in flight when the run was cancelled, so it may or may not have taken effect. */
export type ToolStatus = "succeeded" | "failed" | "denied" | "unknown";

/** A call requested by a model. */
export interface ToolCall {
  /** Unique within a conversation. */
  readonly id: string;
  readonly tool: string;
  /** An object, or the raw text if the model sent invalid JSON. */
  readonly arguments: JsonValue;
  /**
   * Opaque signatures by provider, returned with the call: Gemini rejects calls that come back without their
   * signature.
   */
  readonly signatures?: Readonly<Record<string, string>>;
}

/** The result of one call. */
export interface ToolResult {
  readonly id: string;
  readonly tool: string;
  readonly status: ToolStatus;
  /** The output that the model sees: the tool's answer, truncated if too long, or a sentence about what went wrong. */
  readonly output: JsonValue;
}

export interface TextPart {
  readonly type: "text";
  readonly text: string;
}

/** An image, a PDF or another file. Which media types a model accepts depends on its provider. */
export interface FilePart {
  readonly type: "file";
  /** `type/subtype`. Text files are sent to every model as text. */
  readonly mediaType: string;
  /** Base64 (RFC 4648, section 4). */
  readonly data: string;
}

export type UserPart = TextPart | FilePart;

/** A user's message: its text, if not empty, followed by the parts. */
export interface UserMessage {
  readonly role: "user";
  readonly text: string;
  readonly parts?: readonly UserPart[];
}

export interface AssistantMessage {
  readonly role: "assistant";
  readonly text: string;
  /** Empty in a final answer. */
  readonly toolCalls: readonly ToolCall[];
}

/** Results of the calls in the preceding assistant message. */
export interface ToolMessage {
  readonly role: "tool";
  readonly results: readonly ToolResult[];
}

/** One message of a conversation. Plain JSON, so it can be stored and passed to another run with another provider. */
export type Message = UserMessage | AssistantMessage | ToolMessage;
