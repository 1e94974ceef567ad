import type { LanguageModelV4FunctionTool, LanguageModelV4ToolChoice } from "@ai-sdk/provider";
import {
  booleanAt,
  invalidAt,
  listAt,
  objectAt,
  type ReadonlyMembers,
  textAt,
} from "../../translation/fields.ts";
import { refuseUnknown, unsupported } from "../../translation/unsupported.ts";
import { defined, memberAt } from "./members.ts";

const TOOL: ReadonlySet<string> = new Set([
  ...["type", "name", "description", "input_schema", "strict", "defer_loading", "allowed_callers"],
  // Hints.
  ...["cache_control", "eager_input_streaming"],
]);
const CHOICE: ReadonlySet<string> = new Set(["type", "name", "disable_parallel_tool_use"]);

/**
 * The tools of a request. A tool that is loaded later is left out until the conversation mentions it: until then,
 * Anthropic's models would not see it either.
 * @param mentioned names of the tools that the conversation uses or loads
 */
export function readTools(
  request: ReadonlyMembers,
  mentioned: ReadonlySet<string>,
): LanguageModelV4FunctionTool[] | undefined {
  const tools = memberAt(request, "tools", "", listAt);
  const chosen = memberAt(request, "tool_choice", "", objectAt)?.name;
  return tools?.flatMap((value, index) => {
    const path = `tools[${index}]`;
    const tool = objectAt(value, path);
    refuseServerTool(tool, path);
    refuseUnknown(tool, TOOL, path);
    const name = textAt(tool.name, `${path}.name`);
    const isDeferred = memberAt(tool, "defer_loading", path, booleanAt) === true;
    if (isDeferred && !mentioned.has(name) && chosen !== name) return [];
    return [
      {
        type: "function" as const,
        name,
        inputSchema: objectAt(tool.input_schema, `${path}.input_schema`),
        ...defined({
          description: memberAt(tool, "description", path, textAt),
          strict: memberAt(tool, "strict", path, booleanAt),
        }),
      },
    ];
  });
}

/** Only tools that the client runs itself can be translated. */
function refuseServerTool({ type, allowed_callers: callers }: ReadonlyMembers, path: string): void {
  if (type !== undefined && type !== null && type !== "custom") {
    throw unsupported(
      `${path}.type`,
      "is one of Anthropic's own tools, which this model's provider does not have.",
    );
  }
  if (callers === undefined || callers === null) return;
  const isDirect = Array.isArray(callers) && callers.every((caller) => caller === "direct");
  if (!isDirect) throw unsupported(`${path}.allowed_callers`, "must be direct for this model's provider.");
}

/** The tool that the model must call. Undefined if the request does not say. */
export function readToolChoice(
  request: ReadonlyMembers,
): { readonly toolChoice: LanguageModelV4ToolChoice; readonly isParallel: boolean } | undefined {
  const path = "tool_choice";
  const choice = memberAt(request, path, "", objectAt);
  if (choice === undefined) return undefined;
  refuseUnknown(choice, CHOICE, path);
  const isParallel = memberAt(choice, "disable_parallel_tool_use", path, booleanAt) !== true;
  return { toolChoice: choiceOf(choice, path), isParallel };
}

function choiceOf({ type, name }: ReadonlyMembers, path: string): LanguageModelV4ToolChoice {
  switch (type) {
    case "auto":
    case "none":
      return { type };
    case "any":
      return { type: "required" };
    case "tool":
      return { type: "tool", toolName: textAt(name, `${path}.name`) };
    default:
      throw invalidAt(`${path}.type`, "must be auto, any, tool or none");
  }
}
