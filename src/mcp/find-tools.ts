import Type from "typebox";
import { validator } from "../base/schema.ts";
import { isStopWord, termOf, wordsOf } from "../vault/terms/words.ts";
import { plainSchema } from "./arguments.ts";
import type { ToolView } from "./tool-view.ts";

export const FIND_TOOLS = "find_tools";
export const CALL_TOOL = "call_tool";
const FOUND = 10;
const FOUND_LIMIT = 50;

export const FindArguments = validator(
  Type.Object(
    {
      query: Type.String({
        minLength: 1,
        maxLength: 1_000,
        description: "What a tool shall do, in words.",
      }),
      limit: Type.Optional(
        Type.Integer({ minimum: 1, maximum: FOUND_LIMIT, description: `Default ${FOUND}.` }),
      ),
    },
    { additionalProperties: false },
  ),
);
export const CallArguments = validator(
  Type.Object(
    {
      name: Type.String({ minLength: 1, maxLength: 200, description: `As ${FIND_TOOLS} names it.` }),
      arguments: Type.Optional(Type.Record(Type.String(), Type.Unknown(), { description: "Its arguments." })),
    },
    { additionalProperties: false },
  ),
);

/** What a client in search mode sees, so that its model's context holds two tools and not hundreds. */
export const FINDING_TOOLS: readonly ToolView[] = [
  {
    name: CALL_TOOL,
    title: CALL_TOOL,
    description: `Calls a tool that ${FIND_TOOLS} has found, with arguments that fit its input_schema.`,
    inputSchema: plainSchema(CallArguments.schema),
  },
  {
    name: FIND_TOOLS,
    title: FIND_TOOLS,
    description:
      `Finds tools by what they are for. Answers with their names, descriptions and input schemas; call them with ` +
      `${CALL_TOOL}.`,
    inputSchema: plainSchema(FindArguments.schema),
    annotations: { readOnlyHint: true, openWorldHint: false },
  },
];

/** A word of a name counts more than one of a description. */
const NAME_WEIGHT = 3;

/**
 * The tools whose names and descriptions share most with the query's words (stems), rare words counting more; of equals,
 * in the order of their names.
 */
export function findTools(tools: readonly ToolView[], query: string, limit = FOUND): readonly ToolView[] {
  const wanted = new Set(termsOf(query));
  const indexed = tools.map((tool) => ({
    tool,
    name: new Set(termsOf(apart(tool.title))),
    text: new Set(termsOf(`${apart(tool.title)} ${tool.description}`)),
  }));
  const weights = new Map(
    [...wanted].map((term) => {
      const holders = indexed.filter(({ text }) => text.has(term)).length;
      return [term, Math.log(1 + tools.length / (1 + holders))];
    }),
  );
  const scored = indexed.map(({ tool, name, text }) => {
    let score = 0;
    for (const [term, weight] of weights) {
      if (name.has(term)) score += weight * NAME_WEIGHT;
      else if (text.has(term)) score += weight;
    }
    return { tool, score };
  });
  return scored
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
    .slice(0, limit)
    .map(({ tool }) => tool);
}

/** What stems are compared by. */
function termsOf(text: string): number[] {
  return wordsOf(text)
    .filter((word) => !isStopWord(word))
    .map(termOf);
}

/** `search_openIssues` is three words. */
function apart(name: string): string {
  return name.replaceAll(/([a-z0-9])([A-Z])/g, "$1 $2").replaceAll(/[^\p{L}\p{N}]+/gu, " ");
}
