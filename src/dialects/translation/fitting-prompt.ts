import type {
  LanguageModelV4FilePart,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4TextPart,
  LanguageModelV4ToolResultOutput,
  LanguageModelV4ToolResultPart,
} from "@ai-sdk/provider";
import type { TranslationTarget } from "./translation.ts";

type ResultPart = Extract<LanguageModelV4ToolResultOutput, { type: "content" }>["value"][number];
type UserPart = LanguageModelV4TextPart | LanguageModelV4FilePart;

/** The APIs of these providers accept instructions only before the conversation. The AI SDK refuses any others. */
const SYSTEM_FIRST: ReadonlySet<string> = new Set(["google", "vertex", "bedrock"]);
/** The API of this kind accepts only text as tool results. The AI SDK would send files as base64 text. */
const TEXT_RESULTS = "openai-compatible";
/** For this kind, the AI SDK leaves plain-text files out of tool results. */
const TEXTS_IN_RESULTS = "anthropic";

/**
 * A conversation in a form that a provider kind's API accepts:
 * - instructions in the middle of the conversation become user text in tags if the API does not accept them;
 * - a tool's result becomes a single string, with its files in a user message after it, if results can only be text;
 * - its plain-text files become text if results cannot contain them.
 */
export function fittingPrompt(
  prompt: LanguageModelV4Prompt,
  { kind }: Pick<TranslationTarget, "kind">,
): LanguageModelV4Prompt {
  const fitting =
    kind === TEXT_RESULTS
      ? prompt.flatMap(withTextResults)
      : kind === TEXTS_IN_RESULTS
        ? prompt.map(withTextsInResults)
        : prompt;
  return SYSTEM_FIRST.has(kind) ? withSystemFirst(fitting) : fitting;
}

function withSystemFirst(prompt: LanguageModelV4Prompt): LanguageModelV4Prompt {
  const first = prompt.findIndex(({ role }) => role !== "system");
  const fitting: LanguageModelV4Prompt = [];
  for (const [index, message] of prompt.entries()) {
    if (message.role !== "system" || index < first || first === -1) {
      // A copy, since instructions may be added to it.
      fitting.push(message.role === "user" ? { ...message, content: [...message.content] } : message);
      continue;
    }
    const part: UserPart = { type: "text", text: `<system>\n${message.content}\n</system>` };
    const last = fitting.at(-1);
    if (last?.role === "user") last.content.push(part);
    else fitting.push({ role: "user", content: [part] });
  }
  return fitting;
}

function withTextsInResults(message: LanguageModelV4Message): LanguageModelV4Message {
  if (message.role !== "tool") return message;
  const content = message.content.map((part) => {
    if (part.type !== "tool-result" || part.output.type !== "content") return part;
    return { ...part, output: { ...part.output, value: part.output.value.map(withText) } };
  });
  return { ...message, content };
}

function withText(part: ResultPart): ResultPart {
  if (part.type !== "file" || part.mediaType !== "text/plain" || part.data.type !== "data") return part;
  const { data } = part.data;
  const bytes = typeof data === "string" ? Buffer.from(data, "base64") : data;
  return { type: "text", text: new TextDecoder().decode(bytes) };
}

function withTextResults(message: LanguageModelV4Message): LanguageModelV4Message[] {
  if (message.role !== "tool") return [message];
  const files: UserPart[] = [];
  const content = message.content.map((part) =>
    part.type === "tool-result" ? { ...part, output: textOf(part, files) } : part,
  );
  const results: LanguageModelV4Message = { ...message, content };
  return files.length === 0 ? [results] : [results, { role: "user", content: files }];
}

/** @param files receives the files of the result */
function textOf(
  { output, toolCallId }: LanguageModelV4ToolResultPart,
  files: UserPart[],
): LanguageModelV4ToolResultOutput {
  // Bare text would look like a result.
  if (output.type === "error-text") return { type: "error-json", value: { error: output.value } };
  if (output.type !== "content") return output;
  const texts: string[] = [];
  for (const part of output.value) {
    if (part.type === "text") texts.push(part.text);
    else if (part.type === "file") {
      files.push({ type: "text", text: `A file in the result of the tool call ${toolCallId}:` }, part);
      texts.push("(A file follows in the next message.)");
    }
  }
  return { type: "text", value: texts.join("\n") };
}
