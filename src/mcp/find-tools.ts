import Type from "typebox";
import { validator } from "../base/schema.ts";
import { isStopWord, termOf, wordsOf } from "../vault/terms/words.ts";
import { plainSchema } from "./arguments.ts";
import { lengthOfView, type OwnTool, type ToolView, viewOwnTool } from "./tool-view.ts";

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
        description: "What the tool should do, in words.",
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
      name: Type.String({
        minLength: 1,
        maxLength: 200,
        description: `The name, as returned by ${FIND_TOOLS}.`,
      }),
      arguments: Type.Optional(Type.Record(Type.String(), Type.Unknown(), { description: "Its arguments." })),
    },
    { additionalProperties: false },
  ),
);

/** The tools that a client in search mode sees, so its model's context contains two tools instead of hundreds. */
const TOOLS: readonly OwnTool[] = [
  {
    name: CALL_TOOL,
    title: CALL_TOOL,
    description: `Calls a tool found by ${FIND_TOOLS}, with arguments that match its input_schema.`,
    inputSchema: plainSchema(CallArguments.schema),
  },
  {
    name: FIND_TOOLS,
    title: FIND_TOOLS,
    description:
      `Finds tools by their purpose. Returns their names, descriptions and input schemas; call them with ` +
      `${CALL_TOOL}.`,
    inputSchema: plainSchema(FindArguments.schema),
    annotations: { readOnlyHint: true, openWorldHint: false },
  },
];
export const FINDING_TOOLS: readonly ToolView[] = TOOLS.map(viewOwnTool);

/** A word in a name counts more than one in a description. */
const NAME_WEIGHT = 3;
/** Number of characters of a description that are searched. */
const SEARCHED = 1_000;
/** Maximum characters of all tools in an answer. The first tool is always included. */
const ANSWER_LENGTH = 256 * 1024;
/** Number of tools to process before other work gets a turn. */
const SLICE = 200;

/**
 * Finds the tools whose names and descriptions share the most word stems with the query. Rare words count more; ties
 * keep the order of names. Returns fewer than `limit` if the tools are long.
 */
export async function findTools(
  tools: readonly ToolView[],
  query: string,
  limit = FOUND,
): Promise<readonly ToolView[]> {
  const wanted = new Set(termsOf(query));
  const indexed: { readonly tool: ToolView; readonly terms: ToolTerms }[] = [];
  for (const [index, tool] of tools.entries()) {
    if (index % SLICE === SLICE - 1) await new Promise<void>((resume) => setImmediate(resume));
    const terms = toolTerms(tool, wanted);
    if (terms) indexed.push({ tool, terms });
  }
  const weights = new Map(
    [...wanted].map((term) => {
      const holders = indexed.filter(({ terms: { name, text } }) => name.has(term) || text.has(term)).length;
      return [term, Math.log(1 + tools.length / (1 + holders))];
    }),
  );
  const scored = indexed.map(({ tool, terms: { name, text } }) => {
    let score = 0;
    for (const [term, weight] of weights) {
      if (name.has(term)) score += weight * NAME_WEIGHT;
      else if (text.has(term)) score += weight;
    }
    return { tool, score };
  });
  const found = scored.sort((a, b) => b.score - a.score).slice(0, limit);
  let length = 0;
  return found
    .map(({ tool }) => tool)
    .filter((tool, index) => {
      length += lengthOfView(tool);
      return index === 0 || length <= ANSWER_LENGTH;
    });
}

/** The words of the query that a tool contains. */
interface ToolTerms {
  readonly name: ReadonlySet<number>;
  readonly text: ReadonlySet<number>;
}

/** Undefined if the tool contains none of them. */
function toolTerms({ title, description }: ToolView, wanted: ReadonlySet<number>): ToolTerms | undefined {
  const of = (text: string) => new Set(termsOf(text).filter((term) => wanted.has(term)));
  const terms = { name: of(apart(title)), text: of(description.slice(0, SEARCHED)) };
  return terms.name.size + terms.text.size === 0 ? undefined : terms;
}

/** The terms by which stems are compared. */
function termsOf(text: string): number[] {
  return wordsOf(text)
    .filter((word) => !isStopWord(word))
    .map(termOf);
}

/** Splits a name into words: `search_openIssues` is three words. */
function apart(name: string): string {
  return name.replaceAll(/([a-z0-9])([A-Z])/g, "$1 $2").replaceAll(/[^\p{L}\p{N}]+/gu, " ");
}
