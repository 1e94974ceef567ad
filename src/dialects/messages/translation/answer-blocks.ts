import type {
  LanguageModelV4Citation,
  LanguageModelV4Source,
  LanguageModelV4ToolCall,
  SharedV4ProviderMetadata,
} from "@ai-sdk/provider";
import { Problem } from "../../../base/errors.ts";
import type { JsonTexts } from "../../../base/nested-json.ts";
import { isSigned, packSignature } from "../../translation/signatures.ts";
import type { TranslationTarget } from "../../translation/translation.ts";

/** A block of an answer's content. */
export type AnswerBlock =
  | { readonly type: "text"; readonly text: string; readonly citations?: readonly object[] }
  | ThinkingBlock
  | { readonly type: "tool_use"; readonly id: string; readonly name: string; readonly input: unknown };

export interface ThinkingBlock {
  readonly type: "thinking";
  readonly thinking: string;
  readonly signature: string;
}

/**
 * Thoughts without text that sign a tool call, since a `tool_use` has no field for a signature. Empty if the call is
 * not signed.
 */
export function callSignature(
  target: TranslationTarget,
  toolCallId: string,
  metadata: SharedV4ProviderMetadata | undefined,
): ThinkingBlock[] {
  if (metadata === undefined || !isSigned(metadata)) return [];
  return [{ type: "thinking", thinking: "", signature: packSignature(target, metadata, toolCallId) }];
}

/**
 * Input that is not JSON, because the model made a mistake, is returned as text.
 * @param texts the inputs of the answer
 * @throws JsonTooLarge
 */
export function toolUse(
  { toolCallId, toolName, input }: LanguageModelV4ToolCall,
  texts: JsonTexts,
): AnswerBlock {
  const value = input === "" ? {} : (texts.parsed(input) ?? input);
  return { type: "tool_use", id: toolCallId, name: toolName, input: value };
}

/** The web page that text is taken from. Empty for other sources: those are results of a provider's own tools. */
export function citationOf(
  source: LanguageModelV4Source,
  citedText: LanguageModelV4Citation["citedText"] = "",
): object[] {
  if (source.sourceType !== "url") return [];
  const { url, title = null } = source;
  return [{ type: "web_search_result_location", url, title, cited_text: citedText, encrypted_index: "" }];
}

/** The refusal for a part of an answer that the dialect cannot express. */
export function inexpressible(type: string): Problem {
  return new Problem(
    "provider_failed",
    `The model's answer has a part that a message cannot contain: ${type}.`,
  );
}
