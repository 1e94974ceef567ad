import Type from "typebox";
import { validator } from "../base/schema.ts";
import { plainSchema } from "./arguments.ts";
import { forEachShared, forEachTool, termsOf } from "./tool-terms.ts";
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
/** Maximum characters of all tools in an answer. The first tool is always included. */
const ANSWER_LENGTH = 256 * 1024;

/**
 * Finds the tools whose names and descriptions share the most word stems with the query. Rare words count more; ties
 * keep the order of names. Returns fewer than `limit` if the tools are long. Searches take turns with all other work.
 * A waiting search holds one number per tool.
 */
export async function findTools(
  workspaceId: number,
  tools: readonly ToolView[],
  query: string,
  limit = FOUND,
): Promise<readonly ToolView[]> {
  const wanted = termsOf(query);
  if (wanted.length === 0) return [];
  const holders = new Uint32Array(wanted.length);
  await forEachTool(workspaceId, tools, wanted.length, ({ name, text }) => {
    const count = (term: number) => {
      holders[term] = (holders[term] ?? 0) + 1;
    };
    forEachShared(wanted, name, count);
    forEachShared(wanted, text, count);
  });
  const weights = Float64Array.from(holders, (count) => Math.log(1 + tools.length / (1 + count)));
  const scores = new Float64Array(tools.length);
  await forEachTool(workspaceId, tools, wanted.length, ({ name, text }, index) => {
    let score = 0;
    forEachShared(wanted, name, (term) => {
      score += (weights[term] ?? 0) * NAME_WEIGHT;
    });
    forEachShared(wanted, text, (term) => {
      score += weights[term] ?? 0;
    });
    scores[index] = score;
  });
  return fitting(best(tools, scores, limit));
}

/** The tools with the highest scores, in order. Tools without any score are left out. */
function best(tools: readonly ToolView[], scores: Float64Array, limit: number): readonly ToolView[] {
  const found: { readonly tool: ToolView; readonly score: number }[] = [];
  for (const [index, tool] of tools.entries()) {
    const score = scores[index] ?? 0;
    const last = found.at(-1);
    if (score === 0 || (last && found.length === limit && score <= last.score)) continue;
    const place = found.findLastIndex((other) => other.score >= score) + 1;
    found.splice(place, 0, { tool, score });
    if (found.length > limit) found.pop();
  }
  return found.map(({ tool }) => tool);
}

function fitting(tools: readonly ToolView[]): readonly ToolView[] {
  let length = 0;
  return tools.filter((tool, index) => {
    length += lengthOfView(tool);
    return index === 0 || length <= ANSWER_LENGTH;
  });
}
