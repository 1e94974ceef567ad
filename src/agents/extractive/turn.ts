import type { LanguageModelV4Prompt, LanguageModelV4ToolResultPart } from "@ai-sdk/provider";
import { JsonTexts } from "../../base/nested-json.ts";

type Output = LanguageModelV4ToolResultPart["output"];

/** A tool's answer since the question was asked. */
export interface ToolFinding {
  /** The public name, such as `vault.search`. */
  readonly tool: string;
  readonly status: "succeeded" | "failed" | "denied";
  /** The parsed value if the answer is JSON, even if it arrived as text. */
  readonly value: unknown;
}

/** The current question and the tool results found for it. */
export interface ConversationTurn {
  readonly question: string;
  readonly results: readonly ToolFinding[];
  /** Calls in the whole conversation, used to generate unique ids. */
  readonly callsSoFar: number;
}

/** Finds the last question of a conversation, and the tool results after it. */
export function currentTurn(prompt: LanguageModelV4Prompt): ConversationTurn {
  const asked = prompt.findLastIndex(({ role }) => role === "user");
  let question = "";
  let callsSoFar = 0;
  const results: ToolFinding[] = [];
  const texts = new JsonTexts();
  for (const [index, message] of prompt.entries()) {
    if (message.role === "system") continue;
    for (const part of message.content) {
      if (part.type === "tool-call") callsSoFar += 1;
      else if (index === asked && part.type === "text") question += part.text;
      else if (index > asked && part.type === "tool-result") {
        results.push({ tool: ownName(part.toolName), ...read(part.output, texts) });
      }
    }
  }
  return { question, results, callsSoFar };
}

/** All text of a conversation, for estimating tokens. */
export function textOfPrompt(prompt: LanguageModelV4Prompt): string {
  const texts: string[] = [];
  for (const message of prompt) {
    if (message.role === "system") texts.push(message.content);
    else {
      for (const part of message.content) {
        if (part.type === "text") texts.push(part.text);
        else if (part.type === "tool-call") texts.push(JSON.stringify(part.input) ?? "");
        else if (part.type === "tool-result") texts.push(textOf(part.output));
      }
    }
  }
  return texts.join("");
}

export function plain(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "nothing");
}

/** Restores names that were changed for providers that reject dots. */
function ownName(tool: string): string {
  return tool.replace("__", ".");
}

/** A tool's answer as it was sent. */
function textOf(output: Output): string {
  switch (output.type) {
    case "content":
      return output.value.map((part) => (part.type === "text" ? part.text : `[${part.type}]`)).join("\n");
    case "execution-denied":
      return output.reason ?? "no reason given";
    default:
      return plain(output.value);
  }
}

function read(output: Output, texts: JsonTexts): Omit<ToolFinding, "tool"> {
  switch (output.type) {
    case "text":
    case "content":
      return { status: "succeeded", value: parsed(textOf(output), texts) };
    case "json":
      return { status: "succeeded", value: output.value };
    case "execution-denied":
      return { status: "denied", value: textOf(output) };
    case "error-text":
    case "error-json":
      return { status: "failed", value: output.value };
  }
}

/** MCP tools return JSON as text. Text with too many members stays text. */
function parsed(text: string, texts: JsonTexts): unknown {
  if (!/^\s*[{[]/.test(text)) return text;
  try {
    return texts.parsed(text) ?? text;
  } catch {
    return text;
  }
}
