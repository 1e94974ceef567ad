import type {
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4ReasoningPart,
  LanguageModelV4TextPart,
  LanguageModelV4ToolCallPart,
} from "@ai-sdk/provider";
import { JsonTexts } from "../../../base/nested-json.ts";
import { field, isMembers } from "../../json.ts";
import {
  invalidAt,
  jsonAt,
  listAt,
  objectAt,
  optional,
  type ReadonlyMembers,
  textAt,
} from "../../translation/fields.ts";
import { PackedSignatures } from "../../translation/signatures.ts";
import type { TranslationTarget } from "../../translation/translation.ts";
import { refuseUnknown, unsupported } from "../../translation/unsupported.ts";
import { readTexts, readUserContent } from "./read-content.ts";
import { readThoughts, readToolCallSignature } from "./signed-thoughts.ts";

const SYSTEM = new Set(["role", "content"]);
/** Some clients return answers exactly as they received them. Members that are only for people are not sent again. */
const SEEN = ["refusal", "reasoning_content", "reasoning", "annotations", "parsed"] as const;
const ASSISTANT = new Set(["role", "content", "tool_calls", ...SEEN]);
const TOOL = new Set(["role", "content", "tool_call_id", "name"]);
const TOOL_CALL = new Set(["id", "type", "index", "function", "extra_content"]);
const CALLED = new Set(["name", "arguments", "parsed_arguments"]);

/** The messages of a chat completion as a prompt. */
export function readMessages(value: unknown, target: TranslationTarget): LanguageModelV4Prompt {
  const messages = listAt(value, "messages");
  if (messages.length === 0) throw invalidAt("messages", "must have a message");
  const prompt: LanguageModelV4Prompt = [];
  const calls = new ToolCallReader(target);
  for (const [index, each] of messages.entries()) {
    const path = `messages[${index}]`;
    const message = objectAt(each, path);
    const last = prompt.at(-1);
    switch (message.role) {
      case "system":
      case "developer":
        refuseUnknown(message, SYSTEM, path);
        for (const content of readTexts(message.content, `${path}.content`)) {
          prompt.push({ role: "system", content });
        }
        break;
      case "user":
        refuseUnknown(message, SYSTEM, path);
        prompt.push({ role: "user", content: readUserContent(message.content, `${path}.content`, target) });
        break;
      case "assistant":
        prompt.push(readAssistant(message, path, calls));
        break;
      case "tool": {
        const result = readToolResult(message, path, calls.names);
        if (last?.role === "tool") last.content.push(result);
        else prompt.push({ role: "tool", content: [result] });
        break;
      }
      default:
        throw unsupported(`${path}.role`, "is not a role that can be translated.");
    }
  }
  return prompt;
}

function readAssistant(
  message: ReadonlyMembers,
  path: string,
  toolCalls: ToolCallReader,
): LanguageModelV4Message {
  refuseUnknown(message, ASSISTANT, path);
  const texts = [...readSpoken(message.content, `${path}.content`)];
  const refusal = optional(message.refusal, `${path}.refusal`, textAt);
  if (refusal !== undefined) texts.push(refusal);
  const thoughts: LanguageModelV4ReasoningPart[] = [];
  const content: (LanguageModelV4TextPart | LanguageModelV4ToolCallPart)[] = texts
    .filter((text) => text !== "")
    .map((text) => ({ type: "text", text }));
  const calls = optional(message.tool_calls, `${path}.tool_calls`, listAt) ?? [];
  for (const [index, each] of calls.entries()) {
    const at = `${path}.tool_calls[${index}]`;
    content.push(toolCalls.read(each, at));
    thoughts.push(...readThoughts(field(each, "extra_content"), toolCalls.signatures, `${at}.extra_content`));
  }
  return { role: "assistant", content: [...thoughts, ...content] };
}

/** The text of an assistant's message. Its parts may also be refusals. */
function readSpoken(content: unknown, path: string): readonly string[] {
  if (content === undefined || content === null) return [];
  if (!Array.isArray(content)) return readTexts(content, path);
  return content.flatMap((part, index) => {
    const refusal = field(part, "type") === "refusal" ? field(part, "refusal") : undefined;
    return typeof refusal === "string" ? [refusal] : readTexts([part], `${path}[${index}]`);
  });
}

/** Reads the tool calls of a conversation. */
class ToolCallReader {
  /** Names of the called tools, by call id. */
  readonly names = new Map<string, string>();
  readonly signatures: PackedSignatures;
  readonly #texts = new JsonTexts();

  constructor(target: TranslationTarget) {
    this.signatures = new PackedSignatures(target, this.#texts);
  }

  read(value: unknown, path: string): LanguageModelV4ToolCallPart {
    const call = objectAt(value, path);
    if ((call.type ?? "function") !== "function") throw unsupported(`${path}.type`, "must be function.");
    refuseUnknown(call, TOOL_CALL, path);
    const at = `${path}.function`;
    const tool = objectAt(call.function, at);
    refuseUnknown(tool, CALLED, at);
    const text = textAt(tool.arguments, `${at}.arguments`);
    const providerOptions = readToolCallSignature(
      call.extra_content,
      this.signatures,
      `${path}.extra_content`,
    );
    const toolCallId = textAt(call.id, `${path}.id`);
    const toolName = textAt(tool.name, `${at}.name`);
    const input = this.#argumentsOf(text, `${at}.arguments`);
    this.names.set(toolCallId, toolName);
    return {
      ...{ type: "tool-call", toolCallId, toolName, input },
      ...(providerOptions ? { providerOptions } : {}),
    };
  }

  /** Some models send no arguments for a tool without parameters. */
  #argumentsOf(text: string, path: string): unknown {
    if (text.trim() === "") return {};
    const value = jsonAt(text, path, this.#texts);
    if (isMembers(value)) return value;
    throw unsupported(path, "must be a JSON object for this model's provider.");
  }
}

function readToolResult(message: ReadonlyMembers, path: string, called: ReadonlyMap<string, string>) {
  refuseUnknown(message, TOOL, path);
  const toolCallId = textAt(message.tool_call_id, `${path}.tool_call_id`);
  const toolName = called.get(toolCallId);
  if (toolName === undefined) {
    throw invalidAt(`${path}.tool_call_id`, "must be the id of a tool call in an earlier message");
  }
  if ((message.name ?? toolName) !== toolName) {
    throw invalidAt(`${path}.name`, `must be ${toolName}, the tool that was called`);
  }
  const value = readTexts(message.content, `${path}.content`).join("");
  return {
    ...({ type: "tool-result", toolCallId, toolName } as const),
    output: { type: "text", value } as const,
  };
}
