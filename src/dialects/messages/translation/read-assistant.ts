import type {
  LanguageModelV4Message,
  LanguageModelV4ReasoningPart,
  LanguageModelV4TextPart,
  LanguageModelV4ToolCallPart,
  SharedV4ProviderOptions,
} from "@ai-sdk/provider";
import { JsonTexts } from "../../../base/nested-json.ts";
import { objectAt, type ReadonlyMembers, textAt } from "../../translation/fields.ts";
import { PackedSignatures } from "../../translation/signatures.ts";
import type { TranslationTarget } from "../../translation/translation.ts";
import { refuseUnknown, unsupported } from "../../translation/unsupported.ts";
import { memberAt } from "./members.ts";
import { readBlocks, readTextBlock } from "./read-blocks.ts";

type AssistantPart = LanguageModelV4TextPart | LanguageModelV4ReasoningPart | LanguageModelV4ToolCallPart;

const TOOL_USE: ReadonlySet<string> = new Set(["type", "id", "name", "input", "caller", "cache_control"]);
const THINKING: ReadonlySet<string> = new Set(["type", "thinking", "signature", "cache_control"]);

/** Reads the assistant's messages and remembers which tools they call. */
export class AssistantReader {
  /** The names of the called tools, by call id. */
  readonly toolNames = new Map<string, string>();
  readonly #packed: PackedSignatures;

  constructor(target: TranslationTarget) {
    this.#packed = new PackedSignatures(target, new JsonTexts());
  }

  /** @returns one message, or none if it would be empty: some providers refuse empty messages */
  read(value: unknown, path: string): LanguageModelV4Message[] {
    const blocks = readBlocks(value, path);
    const signatures = this.#signaturesOfCalls(blocks);
    const content = blocks.flatMap(([block, at]): AssistantPart[] => {
      switch (block.type) {
        case "thinking":
          return this.#readThinking(block, at);
        // Only Anthropic has these.
        case "redacted_thinking":
          return [];
        case "tool_use":
          return [this.#readToolUse(block, at, signatures)];
        default:
          return [readTextBlock(block, at)].filter(({ text }) => text !== "");
      }
    });
    return content.length === 0 ? [] : [{ role: "assistant", content }];
  }

  /** Thoughts signed by another provider are left out: this one cannot use them. */
  #readThinking(block: ReadonlyMembers, path: string): AssistantPart[] {
    refuseUnknown(block, THINKING, path);
    const text = textAt(block.thinking, `${path}.thinking`);
    const signature = memberAt(block, "signature", path, textAt) ?? "";
    const signed = this.#packed.unpack(signature, `${path}.signature`);
    if (signed === undefined || signed.toolCallId !== undefined) return [];
    return [{ type: "reasoning", text, ...optionsOf(signed.metadata) }];
  }

  #readToolUse(
    block: ReadonlyMembers,
    path: string,
    signatures: ReadonlyMap<string, SharedV4ProviderOptions>,
  ): LanguageModelV4ToolCallPart {
    refuseUnknown(block, TOOL_USE, path);
    const caller = memberAt(block, "caller", path, objectAt);
    if (caller !== undefined && caller.type !== "direct") {
      throw unsupported(`${path}.caller.type`, "must be direct for this model's provider.");
    }
    const toolCallId = textAt(block.id, `${path}.id`);
    const toolName = textAt(block.name, `${path}.name`);
    this.toolNames.set(toolCallId, toolName);
    const input = block.input ?? {};
    return { type: "tool-call", toolCallId, toolName, input, ...optionsOf(signatures.get(toolCallId) ?? {}) };
  }

  /** Calls are signed by empty thoughts that name them, since a `tool_use` has no field for a signature. */
  #signaturesOfCalls(
    blocks: readonly (readonly [ReadonlyMembers, string])[],
  ): ReadonlyMap<string, SharedV4ProviderOptions> {
    const signatures = blocks.flatMap(([{ type, signature }, at]) => {
      const signed = type === "thinking" ? this.#packed.unpack(signature, `${at}.signature`) : undefined;
      return signed?.toolCallId === undefined ? [] : [[signed.toolCallId, signed.metadata] as const];
    });
    return new Map(signatures);
  }
}

function optionsOf(signed: SharedV4ProviderOptions): { providerOptions?: SharedV4ProviderOptions } {
  return Object.keys(signed).length === 0 ? {} : { providerOptions: signed };
}
