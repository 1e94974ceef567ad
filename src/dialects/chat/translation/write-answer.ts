import type { LanguageModelV4GenerateResult } from "@ai-sdk/provider";
import type { AnswerHead, TranslationTarget } from "../../translation/translation.ts";
import { SignedThoughts, toolCallExtra } from "./signed-thoughts.ts";
import {
  annotationsOf,
  finishReasonOf,
  sourceAnnotations,
  unspokenFile,
  usageMembers,
} from "./write-parts.ts";

/** A model's whole answer as a chat completion. */
export function writeCompletion(
  { content, finishReason, usage }: LanguageModelV4GenerateResult,
  target: TranslationTarget,
  { id, model, created }: AnswerHead,
): object {
  const texts: string[] = [];
  const reasoning: string[] = [];
  const toolCalls: object[] = [];
  const annotations: object[] = [];
  const thoughts = new SignedThoughts();
  for (const [index, part] of content.entries()) {
    if (part.type === "text") {
      texts.push(part.text);
      annotations.push(...annotationsOf(part.citations ?? []));
    } else if (part.type === "reasoning") {
      reasoning.push(part.text);
      thoughts.add(String(index), part.text, part.providerMetadata);
    } else if (part.type === "source") annotations.push(...sourceAnnotations(part));
    else if (part.type === "file") throw unspokenFile();
    else if (part.type === "tool-call" && part.providerExecuted !== true) {
      const { toolCallId, toolName: name, input, providerMetadata } = part;
      const called = { name, arguments: input };
      const extra = toolCallExtra(target, providerMetadata, thoughts.take(target));
      toolCalls.push({ id: toolCallId, type: "function", function: called, ...extra });
    }
  }
  const text = texts.join("");
  const reasoned = reasoning.filter((each) => each !== "").join("\n");
  const message = {
    role: "assistant",
    content: text === "" && toolCalls.length > 0 ? null : text,
    refusal: null,
    ...(reasoned === "" ? {} : { reasoning_content: reasoned }),
    ...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls }),
    ...(annotations.length === 0 ? {} : { annotations }),
  };
  const finish_reason = finishReasonOf(finishReason, toolCalls.length);
  const reported = usageMembers(usage);
  return {
    ...{ id: `chatcmpl-${id}`, object: "chat.completion", created, model },
    choices: [{ index: 0, message, logprobs: null, finish_reason }],
    ...(reported ? { usage: reported } : {}),
  };
}
