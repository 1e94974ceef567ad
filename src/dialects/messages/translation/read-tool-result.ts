import type { LanguageModelV4ToolResultOutput, LanguageModelV4ToolResultPart } from "@ai-sdk/provider";
import { booleanAt, invalidAt, type ReadonlyMembers, textAt } from "../../translation/fields.ts";
import type { TranslationTarget } from "../../translation/translation.ts";
import { refuseUnknown, unsupported } from "../../translation/unsupported.ts";
import { memberAt } from "./members.ts";
import { readBlocks, readUserParts, type UserPart } from "./read-blocks.ts";

const RESULT: ReadonlySet<string> = new Set(["type", "tool_use_id", "content", "is_error", "cache_control"]);
const REFERENCE: ReadonlySet<string> = new Set(["type", "tool_name", "cache_control"]);

/** The packages of these kinds of providers would download any address in a tool result, wherever it points. */
const DOWNLOADING: ReadonlySet<string> = new Set(["google", "vertex"]);

/**
 * Reads a `tool_result`.
 * @param toolNames the names of the called tools, by call id
 * @param loaded receives the names of tools whose definitions the result loads
 */
export function readToolResult(
  block: ReadonlyMembers,
  path: string,
  target: TranslationTarget,
  toolNames: ReadonlyMap<string, string>,
  loaded: Set<string>,
): LanguageModelV4ToolResultPart {
  refuseUnknown(block, RESULT, path);
  const toolCallId = textAt(block.tool_use_id, `${path}.tool_use_id`);
  const toolName = toolNames.get(toolCallId);
  if (toolName === undefined) throw invalidAt(`${path}.tool_use_id`, "must be the id of an earlier tool_use");
  const files = DOWNLOADING.has(target.kind) ? { ...target, supportedUrls: {} } : target;
  const parts = readBlocks(block.content ?? [], `${path}.content`).flatMap(([inner, at]) =>
    inner.type === "tool_reference" ? [readReference(inner, at, loaded)] : readUserParts(inner, at, files),
  );
  const isError = memberAt(block, "is_error", path, booleanAt) === true;
  return { type: "tool-result", toolCallId, toolName, output: outputOf(parts, isError, path) };
}

function outputOf(
  parts: readonly UserPart[],
  isError: boolean,
  path: string,
): LanguageModelV4ToolResultOutput {
  const texts = parts.flatMap((part) => (part.type === "text" ? [part.text] : []));
  const isText = texts.length === parts.length;
  if (isError && !isText)
    throw unsupported(`${path}.is_error`, "cannot be translated for a result with files.");
  if (isError) return { type: "error-text", value: texts.join("\n") };
  return isText && texts.length < 2
    ? { type: "text", value: texts.join("") }
    : { type: "content", value: [...parts] };
}

function readReference(block: ReadonlyMembers, path: string, loaded: Set<string>): UserPart {
  refuseUnknown(block, REFERENCE, path);
  const name = textAt(block.tool_name, `${path}.tool_name`);
  loaded.add(name);
  return { type: "text", text: `The tool ${name} is now available.` };
}
