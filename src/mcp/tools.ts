import type { JsonObject } from "../agents/index.ts";
import { invalidField } from "../base/errors.ts";
import { takeTurn } from "../base/inflow.ts";
import { agentOf } from "./agent-tool.ts";
import { denyArguments } from "./arguments.ts";
import { callAgent } from "./call-agent.ts";
import { callAsked, resultOf } from "./call-asked.ts";
import { CALL_TOOL, CallArguments, FIND_TOOLS, FindArguments, findTools } from "./find-tools.ts";
import type { ToolOffers } from "./offer.ts";
import type { McpParts } from "./parts.ts";
import {
  type Params,
  perform,
  progressOf,
  type RequestContext,
  type RpcResult,
  withLedger,
} from "./request.ts";
import { ToolPage } from "./tool-page.ts";
import { lengthOfView } from "./tool-view.ts";
import type { TaskWaiters } from "./waits.ts";

/** Found tools are parsed once and written twice, which takes as long as measuring them this many times. */
const ANSWER_COST = 8;

export type McpToolParts = McpParts & { readonly offers: ToolOffers; readonly waits: TaskWaiters };

export async function listTools(
  parts: McpToolParts,
  context: RequestContext,
  params: Params,
): Promise<RpcResult> {
  const { caller } = context.visit;
  const { value, ledgerSeq } = await perform(
    parts,
    context,
    { action: "tool.list", scope: null },
    async () => {
      const { listed, paths } = await parts.offers.of(caller);
      const isParsed = context.stream !== null;
      const told = isGatehouse(context) ? { instance: parts.instance, paths } : null;
      const page = new ToolPage(listed, params.cursor, { isParsed, paths: told });
      const next = page.nextCursor === undefined ? {} : { nextCursor: page.nextCursor };
      return { tools: isParsed ? page.parsed() : page, ...next };
    },
  );
  return withLedger(value, ledgerSeq);
}

/** Only requests from another Gatehouse name the Gatehouse instances they have passed through. */
function isGatehouse({ visit }: RequestContext): boolean {
  return (visit.origin.via?.length ?? 0) > 0;
}

export async function callTool(
  parts: McpToolParts,
  context: RequestContext,
  params: Params,
): Promise<RpcResult> {
  const { name, arguments: input = {} } = params;
  if (typeof name !== "string") return refuseParams(parts, context, "/name", "must be a string");
  if (typeof input !== "object" || input === null || Array.isArray(input)) {
    return refuseParams(parts, context, "/arguments", "must be an object");
  }
  if (context.visit.caller.toolsMode === "search") {
    if (name === FIND_TOOLS) return find(parts, context, input);
    if (name === CALL_TOOL) {
      if (CallArguments.is(input)) return call(parts, context, input.name, input.arguments ?? {});
      const { value, ledgerSeq } = await perform(
        parts,
        context,
        { action: "tool.call", scope: null },
        (call) => denyArguments(call, CallArguments.errors(input)),
      );
      return withLedger(value, ledgerSeq);
    }
  }
  return call(parts, context, name, input);
}

/**
 * Records a call that names nothing callable in the same way as any other refused call.
 * @throws RpcError
 */
async function refuseParams(
  parts: McpToolParts,
  context: RequestContext,
  path: string,
  message: string,
): Promise<RpcResult> {
  const refused = perform(parts, context, { action: "tool.call", scope: null }, () =>
    Promise.reject<RpcResult>(invalidField(path, message)),
  );
  return (await refused).value;
}

async function call(
  parts: McpToolParts,
  context: RequestContext,
  shown: string,
  input: object,
): Promise<RpcResult> {
  const { caller } = context.visit;
  const names = await parts.offers.namesOf(caller.workspaceId);
  // A name that is not in the map is used unchanged, so that the refusal and its ledger entry quote it.
  const name = names.inward(shown) ?? shown;
  // A token acting as an agent gets the same refusal for existing and missing agents.
  const agent = agentOf(name) ?? (caller.agent ? agentOf(name.replace("__", ".")) : undefined);
  if (agent !== undefined) return callAgent(parts, context, agent, input);
  const progress = progressOf(context);
  const { abort } = context;
  const { value, ledgerSeq } = await perform(parts, context, { action: "tool.call", scope: null }, (call) =>
    // The input was parsed from JSON.
    parts.calls.call(call, name, input as JsonObject, progress ? { abort, progress } : { abort }),
  );
  if ("task" in value) return callAsked(parts, context, value, ledgerSeq);
  return withLedger(resultOf(value), ledgerSeq);
}

async function find(parts: McpToolParts, context: RequestContext, input: object): Promise<RpcResult> {
  const { value, ledgerSeq } = await perform(
    parts,
    context,
    { action: "tool.find", scope: null },
    async (call) => {
      if (!FindArguments.is(input)) return denyArguments(call, FindArguments.errors(input));
      const { workspaceId } = call.caller;
      const { reachable } = await parts.offers.of(context.visit.caller);
      const found = await findTools(workspaceId, reachable, input.query, input.limit);
      const length = found.reduce((sum, tool) => sum + lengthOfView(tool), 0);
      const turn = takeTurn(workspaceId, { bytes: length * ANSWER_COST });
      if (turn) await turn;
      const tools = found.map((tool) => ({
        name: tool.name,
        title: tool.title,
        description: tool.description,
        input_schema: JSON.parse(tool.inputSchemaJson) as unknown,
      }));
      const answer = { tools, of: reachable.length };
      return { content: [{ type: "text", text: JSON.stringify(answer) }], structuredContent: answer };
    },
  );
  return withLedger(value, ledgerSeq);
}
