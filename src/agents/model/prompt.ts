import type { JsonObject, JsonValue, Message, ToolCall, ToolResult, UserMessage } from "../message.ts";
import type { RunState } from "../run.ts";
import type { JsonSchema } from "../tools/tool.ts";
import { textOfFile } from "./file-text.ts";

interface ProviderTextPart {
  type: "text";
  text: string;
}

/** `Data` is the type that a version of the interface uses for base64. */
interface ProviderFilePart<Data> {
  type: "file";
  mediaType: string;
  data: Data;
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
 * The part of the provider prompt that the framework uses. That part is the same in versions 3 and 4 of the
 * interface, except for files.
 */
export type ProviderMessage<Data = unknown> =
  | { role: "system"; content: string }
  | { role: "user"; content: (ProviderTextPart | ProviderFilePart<Data>)[] }
  | { role: "assistant"; content: (ProviderTextPart | ToolCallPart)[] }
  | { role: "tool"; content: ToolResultPart[] };

export interface ProviderTool {
  type: "function";
  name: string;
  description: string;
  inputSchema: Record<string, unknown>;
}

/** A request to a provider, in the part of its interface that the framework uses. */
export interface ProviderRequest<Data> {
  prompt: ProviderMessage<Data>[];
  tools?: ProviderTool[];
  responseFormat?: { type: "json"; schema: JsonSchema };
  providerOptions?: Record<string, { strictJsonSchema: false }>;
}

/** OpenAI's strict mode refuses many valid schemas. Without it, the schema guides the model. */
const NOT_STRICT = {
  openai: { strictJsonSchema: false },
  azure: { strictJsonSchema: false },
  openaiCompatible: { strictJsonSchema: false },
} as const;

/**
 * Converts a conversation and the offered tools into the form that providers expect. Returns new objects for every
 * call, because a provider may modify them.
 */
export function toProviderRequest<Data>(
  run: RunState,
  messages: readonly Message[],
  toData: (base64: string) => Data,
): ProviderRequest<Data> {
  const { instructions, toolbox, outputSchema } = run.options;
  const nameOf = toolbox.toProvider;
  const prompt = messages.flatMap((message) => toProviderMessage(message, nameOf, toData));
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
  if (tools.length > 0) return { prompt, tools };
  // Gemini refuses it together with tools, and Anthropic's older models receive it as one more tool.
  if (outputSchema === undefined) return { prompt };
  const responseFormat = { type: "json" as const, schema: structuredClone(outputSchema) };
  return { prompt, responseFormat, providerOptions: structuredClone(NOT_STRICT) };
}

type NameOf = (tool: string) => string;

function toProviderMessage<Data>(
  message: Message,
  nameOf: NameOf,
  toData: (base64: string) => Data,
): ProviderMessage<Data>[] {
  switch (message.role) {
    case "user":
      return [{ role: "user", content: userContent(message, toData) }];
    case "assistant": {
      const content: (ProviderTextPart | ToolCallPart)[] = message.toolCalls.map((call) =>
        callPart(call, nameOf),
      );
      if (message.text !== "") content.unshift({ type: "text", text: message.text });
      // Anthropic rejects empty messages.
      return content.length > 0 ? [{ role: "assistant", content }] : [];
    }
    case "tool":
      return [{ role: "tool", content: message.results.map((result) => resultPart(result, nameOf)) }];
  }
}

function userContent<Data>(
  { text, parts = [] }: UserMessage,
  toData: (base64: string) => Data,
): (ProviderTextPart | ProviderFilePart<Data>)[] {
  const content = parts.map((part): ProviderTextPart | ProviderFilePart<Data> => {
    if (part.type === "text") return { type: "text", text: part.text };
    const written = textOfFile(part);
    if (written !== undefined) return { type: "text", text: written };
    return { type: "file", mediaType: part.mediaType, data: toData(part.data) };
  });
  if (text !== "" || content.length === 0) content.unshift({ type: "text", text });
  return content;
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
