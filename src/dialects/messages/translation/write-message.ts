import type { LanguageModelV4Content, LanguageModelV4GenerateResult } from "@ai-sdk/provider";
import { JsonTexts } from "../../../base/nested-json.ts";
import { isSigned, packSignature } from "../../translation/signatures.ts";
import type { AnswerHead, TranslationTarget } from "../../translation/translation.ts";
import { type AnswerBlock, callSignature, citationOf, inexpressible, toolUse } from "./answer-blocks.ts";
import { endMembers, usageMembers } from "./answer-end.ts";
import type { ThinkingForm } from "./thinking-form.ts";

/** The members of a message that are known before its content. */
export function messageHead({ id, model }: AnswerHead): Record<string, unknown> {
  return { id: `msg_${id}`, type: "message", role: "assistant", model };
}

/** Writes a whole answer as a message. @throws JsonTooLarge */
export function wholeMessage(
  { content, usage, ...end }: LanguageModelV4GenerateResult,
  target: TranslationTarget,
  head: AnswerHead,
  thinking: ThinkingForm,
): object {
  const blocks: AnswerBlock[] = [];
  const inputs = new JsonTexts();
  for (const part of content) {
    if (part.type === "source") cite(blocks, citationOf(part));
    else blocks.push(...blocksOf(part, target, thinking, inputs));
  }
  const callsTools = blocks.some(({ type }) => type === "tool_use");
  return {
    ...messageHead(head),
    content: blocks,
    ...endMembers(end, callsTools),
    usage: usageMembers(usage),
  };
}

function blocksOf(
  part: LanguageModelV4Content,
  target: TranslationTarget,
  { isShown, isOmitted }: ThinkingForm,
  inputs: JsonTexts,
): AnswerBlock[] {
  switch (part.type) {
    case "text": {
      const citations = (part.citations ?? []).flatMap((each) => citationOf(each.source, each.citedText));
      if (part.text === "") return [];
      return [{ type: "text", text: part.text, ...(citations.length === 0 ? {} : { citations }) }];
    }
    case "reasoning": {
      const { text, providerMetadata = {} } = part;
      if (!isShown || (text === "" && !isSigned(providerMetadata))) return [];
      const signature = packSignature(target, providerMetadata);
      return [{ type: "thinking", thinking: isOmitted ? "" : text, signature }];
    }
    case "tool-call":
      if (part.providerExecuted) throw inexpressible("a call to one of the provider's own tools");
      return [...callSignature(target, part.toolCallId, part.providerMetadata), toolUse(part, inputs)];
    default:
      throw inexpressible(part.type);
  }
}

/** Adds citations to the last text. */
function cite(blocks: AnswerBlock[], citations: readonly object[]): void {
  const index = blocks.findLastIndex(({ type }) => type === "text");
  const block = blocks[index];
  if (citations.length === 0 || block?.type !== "text") return;
  blocks[index] = { ...block, citations: [...(block.citations ?? []), ...citations] };
}
