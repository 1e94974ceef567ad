import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import { invalidAt, numberAt, objectAt, type ReadonlyMembers, textAt } from "../../translation/fields.ts";
import type { TranslationTarget } from "../../translation/translation.ts";
import { refuseUnknown, unsupported } from "../../translation/unsupported.ts";
import { countAt, defined, memberAt, textsAt } from "./members.ts";
import { providerOptions } from "./provider-options.ts";
import { readConversation, readSystem } from "./read-conversation.ts";
import { readThinking } from "./read-thinking.ts";
import { readToolChoice, readTools } from "./read-tools.ts";

const KNOWN: ReadonlySet<string> = new Set([
  ...[
    "model",
    "stream",
    "max_tokens",
    "messages",
    "system",
    "stop_sequences",
    "temperature",
    "top_p",
    "top_k",
  ],
  ...["tools", "tool_choice", "thinking", "output_config", "output_format", "metadata", "context_management"],
  // Hints that change the cost or the speed of an answer.
  ...["cache_control", "service_tier", "speed"],
]);
const OUTPUT_CONFIG: ReadonlySet<string> = new Set(["effort", "format"]);
const FORMAT: ReadonlySet<string> = new Set(["type", "schema"]);

/** The names that clients of Messages use for the options of a call. */
export const OPTION_PATHS: Readonly<Record<string, string>> = {
  maxOutputTokens: "max_tokens",
  temperature: "temperature",
  topP: "top_p",
  topK: "top_k",
  stopSequences: "stop_sequences",
  responseFormat: "output_config.format",
  reasoning: "thinking",
  reasoningEffort: "output_config.effort",
  tools: "tools",
  toolChoice: "tool_choice",
  strict: "tools.strict",
};

/** Reads a Messages request as a call. @throws Problem 400 `unsupported_parameter`, 422 `validation_failed` */
export function readMessagesCall(value: unknown, target: TranslationTarget): LanguageModelV4CallOptions {
  const request = objectAt(value, "");
  refuseUnknown(request, KNOWN);
  refuseContextEdits(request);
  const { output_config } = request;
  const config = output_config === undefined ? {} : objectAt(output_config ?? {}, "output_config");
  refuseUnknown(config, OUTPUT_CONFIG, "output_config");
  const maxOutputTokens = countAt(request.max_tokens, "max_tokens");
  const conversation = readConversation(request.messages, target);
  const effort = conversation.effort ?? memberAt(config, "effort", "output_config", textAt);
  const thinking = readThinking(request.thinking, effort, maxOutputTokens);
  const choice = readToolChoice(request);
  return {
    prompt: [...readSystem(request.system), ...conversation.prompt],
    maxOutputTokens,
    ...defined({
      temperature: memberAt(request, "temperature", "", numberAt),
      topP: memberAt(request, "top_p", "", numberAt),
      topK: memberAt(request, "top_k", "", countAt),
      stopSequences: memberAt(request, "stop_sequences", "", textsAt),
      responseFormat: readFormat(request, config),
      reasoning: thinking.reasoning,
      tools: readTools(request, conversation.toolNames),
      toolChoice: choice?.toolChoice,
      providerOptions: providerOptions(target, {
        userId: readUserId(request),
        isParallel: choice?.isParallel ?? true,
        thinking,
      }),
    }),
  };
}

function readFormat(
  request: ReadonlyMembers,
  config: ReadonlyMembers,
): LanguageModelV4CallOptions["responseFormat"] {
  const inConfig = memberAt(config, "format", "output_config", objectAt);
  const path = inConfig ? "output_config.format" : "output_format";
  const format = inConfig ?? memberAt(request, "output_format", "", objectAt);
  if (format === undefined) return undefined;
  refuseUnknown(format, FORMAT, path);
  if (format.type !== "json_schema") throw unsupported(`${path}.type`, "must be json_schema.");
  return { type: "json", schema: objectAt(format.schema, `${path}.schema`) };
}

function readUserId(request: ReadonlyMembers): string | undefined {
  const metadata = memberAt(request, "metadata", "", objectAt);
  if (metadata === undefined) return undefined;
  refuseUnknown(metadata, new Set(["user_id"]), "metadata");
  return memberAt(metadata, "user_id", "metadata", textAt);
}

/** Nothing is edited here, so an edit is accepted only if it keeps everything. */
function refuseContextEdits(request: ReadonlyMembers): void {
  const path = "context_management";
  const management = memberAt(request, path, "", objectAt);
  if (management === undefined) return;
  refuseUnknown(management, new Set(["edits"]), path);
  const edits = management.edits ?? [];
  if (!Array.isArray(edits)) throw invalidAt(`${path}.edits`, "must be a list");
  for (const [index, edit] of edits.entries()) {
    const { type, keep, ...rest } = objectAt(edit, `${path}.edits[${index}]`);
    if (type === "clear_thinking_20251015" && keep === "all" && Object.keys(rest).length === 0) continue;
    throw unsupported(`${path}.edits[${index}]`, "cannot be translated for this model's provider.");
  }
}
