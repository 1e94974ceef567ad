import type { JsonObject, JsonValue, Message, ToolCall, ToolResult } from "../message.ts";
import type { RunState } from "../run.ts";

interface TextPart {
  type: "text";
  text: string;
}

interface ToolCallPart {
  type: "tool-call";
  toolCallId: string;
  toolName: string;
  input: JsonObject;
  providerOptions?: Record<string, { thoughtSignature: string }>;
}

interface ToolResultPart {
  type: "tool-result";
  toolCallId: string;
  toolName: string;
  output:
    | { type: "text" | "error-text"; value: string }
    | { type: "json"; value: JsonValue }
    | { type: "execution-denied"; reason: string };
}

/**
 * The part of the provider prompt that the framework uses, which is the same in versions 3 and 4 of the interface.
 */
export type ProviderMessage =
  | { role: "system"; content: string }
  | { role: "user"; content: TextPart[] }
  | { role: "assistant"; content: (TextPart | ToolCallPart)[] }
  | { role: "tool"; content: ToolResultPart[] };

export interface ProviderTool {
  type: "function";
  name: string;
  description: string;
  inputSchema: Record<string, unknown>;
}

/**
 * Converts a conversation and the tools on offer for providers. Returns new objects for every call, because a provider
 * may modify them.
 */
export function toProviderRequest(
  run: RunState,
  messages: readonly Message[],
): { prompt: ProviderMessage[]; tools?: ProviderTool[] } {
  const { instructions, toolbox } = run.options;
  const nameOf = toolbox.toProvider;
  const prompt = messages.flatMap((message) => toProviderMessage(message, nameOf));
  if (instructions !== undefined && instructions !== "") {
    prompt.unshift({ role: "system", content: instructions });
  }
  const tools = toolbox.offered().map(
    ({ name, description, inputSchema }): ProviderTool => ({
      type: "function",
      name: nameOf(name),
      description,
      inputSchema: { ...inputSchema },
    }),
  );
  return tools.length === 0 ? { prompt } : { prompt, tools };
}

type NameOf = (tool: string) => string;

function toProviderMessage(message: Message, nameOf: NameOf): ProviderMessage[] {
  switch (message.role) {
    case "user":
      return [{ role: "user", content: [{ type: "text", text: message.text }] }];
    case "assistant": {
      const content: (TextPart | ToolCallPart)[] = message.toolCalls.map((call) => callPart(call, nameOf));
      if (message.text !== "") content.unshift({ type: "text", text: message.text });
      // Anthropic rejects empty messages.
      return content.length > 0 ? [{ role: "assistant", content }] : [];
    }
    case "tool":
      return [{ role: "tool", content: message.results.map((result) => resultPart(result, nameOf)) }];
  }
}

export function isJsonObject(value: JsonValue): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function callPart(call: ToolCall, nameOf: NameOf): ToolCallPart {
  return {
    type: "tool-call",
    toolCallId: call.id,
    toolName: nameOf(call.tool),
    // Providers accept only objects. The result tells the model that its arguments could not be read.
    input: isJsonObject(call.arguments) ? call.arguments : {},
    ...(call.signatures === undefined ? {} : { providerOptions: signed(call.signatures) }),
  };
}

function signed(signatures: Readonly<Record<string, string>>): Record<string, { thoughtSignature: string }> {
  const entries = Object.entries(signatures);
  return Object.fromEntries(entries.map(([provider, thoughtSignature]) => [provider, { thoughtSignature }]));
}

function resultPart(result: ToolResult, nameOf: NameOf): ToolResultPart {
  return {
    type: "tool-result",
    toolCallId: result.id,
    toolName: nameOf(result.tool),
    output: resultOutput(result),
  };
}

function resultOutput({ status, output }: ToolResult): ToolResultPart["output"] {
  const text = typeof output === "string" ? output : undefined;
  switch (status) {
    case "succeeded":
      return text === undefined ? { type: "json", value: output } : { type: "text", value: text };
    case "denied":
      return { type: "execution-denied", reason: text ?? JSON.stringify(output) };
    case "failed":
    case "unknown":
      return { type: "error-text", value: text ?? JSON.stringify(output) };
  }
}
