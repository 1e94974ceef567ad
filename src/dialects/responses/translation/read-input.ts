import type {
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4ReasoningPart,
  LanguageModelV4ToolCallPart,
  LanguageModelV4ToolResultPart,
  SharedV4ProviderMetadata,
} from "@ai-sdk/provider";
import { JsonTexts } from "../../../base/nested-json.ts";
import { field } from "../../json.ts";
import {
  invalidAt,
  jsonAt,
  listAt,
  objectAt,
  optional,
  type ReadonlyMembers,
  textAt,
} from "../../translation/fields.ts";
import { isSigned, PackedSignatures } from "../../translation/signatures.ts";
import type { TranslationTarget } from "../../translation/translation.ts";
import { refuseUnknown, unsupported } from "../../translation/unsupported.ts";
import { readContent, readTexts } from "./read-content.ts";
import { flatName } from "./tool-names.ts";

const MESSAGE: ReadonlySet<string> = new Set(["type", "id", "status", "role", "content", "phase"]);
const CALL: ReadonlySet<string> = new Set([
  ...["type", "id", "status", "call_id", "name", "namespace", "arguments", "parsed_arguments"],
]);
const RESULT: ReadonlySet<string> = new Set(["type", "id", "status", "call_id", "output"]);
const REASONING: ReadonlySet<string> = new Set([
  ...["type", "id", "status", "summary", "content", "encrypted_content"],
]);

type AssistantMessage = Extract<LanguageModelV4Message, { role: "assistant" }>;

/** Reads a request's instructions and input as a prompt. */
export function readInput(
  instructions: unknown,
  input: unknown,
  target: TranslationTarget,
): LanguageModelV4Prompt {
  const prompt = new PromptReader(target);
  const said = optional(instructions, "instructions", textAt);
  if (said !== undefined) prompt.add({ role: "system", content: said });
  if (typeof input === "string") prompt.add({ role: "user", content: [{ type: "text", text: input }] });
  else prompt.readItems(listAt(input, "input"));
  if (prompt.messages.every(({ role }) => role === "system")) throw invalidAt("input", "must have a message");
  return prompt.messages;
}

/** Merges items into messages: text that a model wrote in several items is one message. */
class PromptReader {
  readonly messages: LanguageModelV4Prompt = [];
  readonly #target: TranslationTarget;
  readonly #texts = new JsonTexts();
  readonly #packed: PackedSignatures;
  /** Names of the called tools, by call id. */
  readonly #called = new Map<string, string>();
  /** Signatures of tool calls, by call id. They arrive in separate items. */
  readonly #signatures = new Map<string, SharedV4ProviderMetadata>();

  constructor(target: TranslationTarget) {
    this.#target = target;
    this.#packed = new PackedSignatures(target, this.#texts);
  }

  add(message: LanguageModelV4Message): void {
    this.messages.push(message);
  }

  readItems(items: readonly unknown[]): void {
    for (const [index, item] of items.entries()) {
      const packed = this.#packed.unpack(
        field(item, "encrypted_content"),
        `input[${index}].encrypted_content`,
      );
      if (packed?.toolCallId !== undefined) this.#signatures.set(packed.toolCallId, packed.metadata);
    }
    for (const [index, item] of items.entries()) {
      const path = `input[${index}]`;
      this.#readItem(objectAt(item, path), path);
    }
  }

  #readItem(item: ReadonlyMembers, path: string): void {
    const type = item.type ?? (item.role === undefined ? "item_reference" : "message");
    switch (type) {
      case "message":
        this.#readMessage(item, path);
        break;
      case "reasoning":
        this.#readReasoning(item, path);
        break;
      case "function_call":
        this.#assistant().content.push(this.#readCall(item, path));
        break;
      case "function_call_output":
        this.#addResult(this.#readResult(item, path));
        break;
      default:
        throw unsupported(`${path}.type`, "is not a type of item that can be translated.");
    }
  }

  #readMessage(message: ReadonlyMembers, path: string): void {
    refuseUnknown(message, MESSAGE, path);
    const { role, content } = message;
    const at = `${path}.content`;
    if (role === "user") this.add({ role, content: readContent(content, at, this.#target) });
    else if (role === "system" || role === "developer") {
      for (const text of readTexts(content, at)) this.add({ role: "system", content: text });
    } else if (role === "assistant") {
      for (const text of readTexts(content, at)) {
        if (text !== "") this.#assistant().content.push({ type: "text", text });
      }
    } else throw unsupported(`${path}.role`, "is not a role that can be translated.");
  }

  /** Leaves out reasoning from another provider, which this one cannot use. Providers do the same themselves. */
  #readReasoning(item: ReadonlyMembers, path: string): void {
    refuseUnknown(item, REASONING, path);
    const packed = optional(item.encrypted_content, `${path}.encrypted_content`, textAt);
    const signature = this.#packed.unpack(packed, `${path}.encrypted_content`);
    if (signature === undefined || signature.toolCallId !== undefined) return;
    const providerOptions = signature.metadata;
    if (!isSigned(providerOptions)) return;
    const texts = (optional(item.summary, `${path}.summary`, listAt) ?? []).map((part, index) =>
      textAt(field(part, "text"), `${path}.summary[${index}].text`),
    );
    const part: LanguageModelV4ReasoningPart = {
      type: "reasoning",
      text: texts.join("\n\n"),
      providerOptions,
    };
    this.#assistant().content.push(part);
  }

  #readCall(item: ReadonlyMembers, path: string): LanguageModelV4ToolCallPart {
    refuseUnknown(item, CALL, path);
    const toolCallId = textAt(item.call_id, `${path}.call_id`);
    const name = textAt(item.name, `${path}.name`);
    const namespace = optional(item.namespace, `${path}.namespace`, textAt);
    const toolName = namespace === undefined ? name : flatName(namespace, name);
    const at = `${path}.arguments`;
    const text = textAt(item.arguments, at);
    // Models may write arguments that are not JSON, and some providers accept nothing but JSON.
    const input = text === "" ? {} : (jsonAt(text, at, this.#texts) ?? text);
    const providerOptions = this.#signatures.get(toolCallId);
    this.#called.set(toolCallId, toolName);
    return {
      ...{ type: "tool-call", toolCallId, toolName, input },
      ...(providerOptions ? { providerOptions } : {}),
    };
  }

  #readResult(item: ReadonlyMembers, path: string): LanguageModelV4ToolResultPart {
    refuseUnknown(item, RESULT, path);
    const toolCallId = textAt(item.call_id, `${path}.call_id`);
    const toolName = this.#called.get(toolCallId);
    if (toolName === undefined)
      throw invalidAt(`${path}.call_id`, "must be the id of an earlier function_call");
    if (typeof item.output === "string") {
      return { type: "tool-result", toolCallId, toolName, output: { type: "text", value: item.output } };
    }
    // Addresses in tool results are not passed to any provider, because some packages would download them.
    const target = { ...this.#target, supportedUrls: {} };
    const parts = readContent(item.output, `${path}.output`, target);
    return { type: "tool-result", toolCallId, toolName, output: { type: "content", value: parts } };
  }

  #assistant(): AssistantMessage {
    const last = this.messages.at(-1);
    if (last?.role === "assistant") return last;
    const message: AssistantMessage = { role: "assistant", content: [] };
    this.messages.push(message);
    return message;
  }

  #addResult(result: LanguageModelV4ToolResultPart): void {
    const last = this.messages.at(-1);
    if (last?.role === "tool") last.content.push(result);
    else this.messages.push({ role: "tool", content: [result] });
  }
}
