import type {
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4ToolResultPart,
} from "@ai-sdk/provider";
import { invalidAt, listAt, objectAt, type ReadonlyMembers, textAt } from "../../translation/fields.ts";
import type { TranslationTarget } from "../../translation/translation.ts";
import { refuseUnknown, unsupported } from "../../translation/unsupported.ts";
import { memberAt } from "./members.ts";
import { AssistantReader } from "./read-assistant.ts";
import { readBlocks, readTextBlock, readUserParts, type UserPart } from "./read-blocks.ts";
import { readToolResult } from "./read-tool-result.ts";

/** The messages of a request. */
export interface Conversation {
  readonly prompt: LanguageModelV4Prompt;
  /** Tools that were called or whose definitions were loaded. */
  readonly toolNames: ReadonlySet<string>;
  /** The effort that the last message with an effort requests. */
  readonly effort: string | undefined;
}

/** Reads `system`. Its texts become one message: the templates of many models do not allow a second one. */
export function readSystem(value: unknown): LanguageModelV4Prompt {
  return value === undefined || value === null ? [] : systemMessages(value, "system");
}

/** Reads `messages`. */
export function readConversation(value: unknown, target: TranslationTarget): Conversation {
  const messages = listAt(value, "messages");
  const assistant = new AssistantReader(target);
  const loaded = new Set<string>();
  const prompt: LanguageModelV4Prompt = [];
  let effort: string | undefined;
  for (const [index, given] of messages.entries()) {
    const path = `messages[${index}]`;
    const message = objectAt(given, path);
    const { role, content } = message;
    refuseUnknown(
      message,
      new Set(["role", "content", ...(role === "system" ? ["output_config"] : [])]),
      path,
    );
    if (role === "user") prompt.push(...readUser(content, `${path}.content`, target, assistant, loaded));
    else if (role === "assistant") prompt.push(...assistant.read(content, `${path}.content`));
    else if (role === "system") {
      prompt.push(...systemMessages(content, `${path}.content`));
      effort = readEffort(message, path) ?? effort;
    } else throw invalidAt(`${path}.role`, "must be user, assistant or system");
  }
  const last = messages.length - 1;
  if (last < 0) throw invalidAt("messages", "must not be empty");
  if (objectAt(messages[last], `messages[${last}]`).role === "assistant") {
    throw unsupported(
      `messages[${last}]`,
      "must not be the assistant's: this model's provider cannot continue a started answer.",
    );
  }
  return { prompt, toolNames: new Set([...loaded, ...assistant.toolNames.values()]), effort };
}

/** A change of effort applies from this message on. Only the last one matters to the answer. */
function readEffort(message: ReadonlyMembers, path: string): string | undefined {
  const config = memberAt(message, "output_config", path, objectAt);
  if (config === undefined) return undefined;
  refuseUnknown(config, new Set(["effort"]), `${path}.output_config`);
  return memberAt(config, "effort", `${path}.output_config`, textAt);
}

function systemMessages(value: unknown, path: string): LanguageModelV4Message[] {
  const texts = readBlocks(value, path).map(([block, at]) => readTextBlock(block, at).text);
  const content = texts.join("\n\n");
  return content === "" ? [] : [{ role: "system", content }];
}

/** A user message: tool results first, as Anthropic requires, and then the user's own content. */
function readUser(
  value: unknown,
  path: string,
  target: TranslationTarget,
  { toolNames }: AssistantReader,
  loaded: Set<string>,
): LanguageModelV4Message[] {
  const results: LanguageModelV4ToolResultPart[] = [];
  const parts: UserPart[] = [];
  for (const [block, at] of readBlocks(value, path)) {
    if (block.type !== "tool_result") parts.push(...readUserParts(block, at, target));
    else if (parts.length > 0) throw invalidAt(at, "a tool_result must come before all other content");
    else results.push(readToolResult(block, at, target, toolNames, loaded));
  }
  if (results.length + parts.length === 0) throw invalidAt(path, "must not be empty");
  return [
    ...(results.length === 0 ? [] : [{ role: "tool" as const, content: results }]),
    ...(parts.length === 0 ? [] : [{ role: "user" as const, content: parts }]),
  ];
}
