import type { JSONObject, JSONValue } from "@ai-sdk/provider";

/** Anything `JSON.stringify` and `JSON.parse` take there and back. */
export type JsonValue = JSONValue;
export type JsonObject = JSONObject;

/** `unknown`: the call was out when the run was cancelled; whether it took effect cannot be told from here. */
export type ToolStatus = "succeeded" | "failed" | "denied" | "unknown";

/** A call that a model asked for. */
export interface ToolCall {
  /** Unique within a conversation. */
  readonly id: string;
  readonly tool: string;
  /** An object, or the raw text where the model sent no valid JSON. */
  readonly arguments: JsonValue;
  /** Opaque signatures by provider, sent back with the call: Gemini refuses a call that returns without its own. */
  readonly signatures?: Readonly<Record<string, string>>;
}

/** What came of one call. */
export interface ToolResult {
  readonly id: string;
  readonly tool: string;
  readonly status: ToolStatus;
  /** What the model is shown: the tool's answer, cut where too long, or a sentence saying what went wrong. */
  readonly output: JsonValue;
}

export interface UserMessage {
  readonly role: "user";
  readonly text: string;
}

export interface AssistantMessage {
  readonly role: "assistant";
  readonly text: string;
  /** Empty in a final answer. */
  readonly toolCalls: readonly ToolCall[];
}

/** The results of the calls of the assistant message before it. */
export interface ToolMessage {
  readonly role: "tool";
  readonly results: readonly ToolResult[];
}

/** One message of a conversation. Plain JSON: it can be stored and given to another run, on another provider. */
export type Message = UserMessage | AssistantMessage | ToolMessage;
