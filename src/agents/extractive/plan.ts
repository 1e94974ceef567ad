import { type LanguageModelV4CallOptions, UnsupportedFunctionalityError } from "@ai-sdk/provider";
import { field } from "../../base/json.ts";
import type { ConversationTurn } from "./turn.ts";

type ListedTool = NonNullable<LanguageModelV4CallOptions["tools"]>[number];

export interface PlannedCall {
  readonly id: string;
  readonly tool: string;
  /** JSON. */
  readonly input: string;
}

/** Parameter names that take a question. */
const QUESTION_NAMES = ["query", "q", "question", "text", "search"];
/** Parameter names that are used only for searches. A tool that takes a `text` may send it to someone. */
const SEARCH_NAMES = ["query", "q", "question", "search"];
/** Maximum number of calls. The model cannot judge which tools help, so it must not call an entire catalogue. */
const MAX_CALLS = 16;

/**
 * Plans the calls that need no understanding: tools that require no arguments, and tools that require a single
 * string, which can be the question. The vault's tools come first, then the others in the order offered. Models do
 * not see a tool's flags, so tools that require more are not called.
 */
export function planCalls(turn: ConversationTurn, tools: readonly ListedTool[]): readonly PlannedCall[] {
  const fillable: { tool: string; input: string }[] = [];
  for (const tool of tools) {
    if (tool.type !== "function") continue;
    const input = fill(tool.inputSchema, turn.question);
    if (input) fillable.push({ tool: tool.name, input: JSON.stringify(input) });
  }
  const isVault = ({ tool }: { tool: string }): boolean => tool.startsWith("vault");
  const ordered = [...fillable.filter(isVault), ...fillable.filter((call) => !isVault(call))];
  return ordered
    .slice(0, MAX_CALLS)
    .map((call, index) => ({ id: `extractive_${turn.callsSoFar + index + 1}`, ...call }));
}

/**
 * Plans calls to tools that a client runs. No policy checks these calls, and this model cannot judge what the tools
 * do. It therefore calls only tools that require a search string, and passes the question.
 * @throws UnsupportedFunctionalityError if a required call cannot be made
 */
export function planClientCalls(
  turn: ConversationTurn,
  { tools = [], toolChoice }: Pick<LanguageModelV4CallOptions, "tools" | "toolChoice">,
): readonly PlannedCall[] {
  if (toolChoice?.type === "none") return [];
  const searching = tools.filter(
    (tool) =>
      tool.type === "function" &&
      (toolChoice?.type !== "tool" || tool.name === toolChoice.toolName) &&
      SEARCH_NAMES.some((name) => asList(field(tool.inputSchema, "required")).includes(name)),
  );
  const calls = planCalls(turn, searching);
  if (calls.length > 0 || toolChoice === undefined || toolChoice.type === "auto") return calls;
  throw new UnsupportedFunctionalityError({
    functionality: "a call to a tool that requires more than a search text, by builtin/extractive",
  });
}

/** The arguments; undefined if the tool requires something unknown. */
function fill(schema: unknown, question: string): Record<string, string> | undefined {
  const names = asList(field(schema, "required"));
  const properties = field(schema, "properties");
  const name =
    names.length === 0 ? QUESTION_NAMES.find((known) => isText(field(properties, known))) : names[0];
  if (name === undefined) return {};
  if (names.length > 1 || typeof name !== "string" || !QUESTION_NAMES.includes(name)) return undefined;
  const property = field(properties, name);
  if (!isText(property)) return undefined;
  const limit = field(property, "maxLength");
  return { [name]: typeof limit === "number" ? question.slice(0, limit) : question };
}

/** A string with any content. A string with an enum or a pattern cannot be a question. */
function isText(property: unknown): boolean {
  return (
    field(property, "type") === "string" &&
    ["enum", "const", "pattern", "format"].every((rule) => field(property, rule) === undefined)
  );
}

function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
