import type { JsonObject } from "../agents/index.ts";
import { invalidField } from "../base/errors.ts";
import { PATH_META } from "../base/via.ts";
import { agentOf } from "./agent-tool.ts";
import { denyArguments } from "./arguments.ts";
import { callAgent } from "./call-agent.ts";
import { callAsked, resultOf } from "./call-asked.ts";
import { CALL_TOOL, CallArguments, FIND_TOOLS, FindArguments, findTools } from "./find-tools.ts";
import type { Offer, Offers } from "./offer.ts";
import type { McpParts } from "./parts.ts";
import { type Params, perform, progressOf, type RequestContext, type Result, withLedger } from "./request.ts";
import type { Waits } from "./waits.ts";

/** Tools in one page of a listing: many clients read only the first. */
const PAGE = 1_000;

export type ToolParts = McpParts & { readonly offers: Offers; readonly waits: Waits };

export async function listTools(parts: ToolParts, context: RequestContext, params: Params): Promise<Result> {
  const { caller } = context.visit;
  const { value, ledgerSeq } = await perform(
    parts,
    context,
    { action: "tool.list", scope: null },
    async () => {
      const { listed, paths } = await parts.offers.of(caller);
      return page(isGatehouse(context) ? withPaths(listed, paths, parts.instance) : listed, params.cursor);
    },
  );
  return withLedger(value, ledgerSeq);
}

/** Only another Gatehouse's requests name the Gatehouses that they have passed. */
function isGatehouse({ visit }: RequestContext): boolean {
  return (visit.origin.via?.length ?? 0) > 0;
}

/** Another Gatehouse leaves out what leads back to it: two that connect each other would list their tools without end. */
function withPaths(listed: Offer["listed"], paths: Offer["paths"], instance: string): Offer["listed"] {
  return listed.map((tool) => ({
    ...tool,
    _meta: { [PATH_META]: [instance, ...(paths.get(tool.name) ?? [])] },
  }));
}

/** A cursor is the name of the last tool of the page before: tools that come or go between two pages harm nothing. */
function page(tools: Offer["listed"], cursor: unknown): Result {
  const after = cursor === undefined ? undefined : decode(cursor);
  const rest = after === undefined ? tools : tools.filter(({ name }) => name > after);
  const shown = rest.length > PAGE ? rest.slice(0, PAGE) : rest;
  const last = shown.at(-1);
  if (rest.length === shown.length || !last) return { tools: shown };
  return { tools: shown, nextCursor: Buffer.from(last.name).toString("base64url") };
}

function decode(cursor: unknown): string {
  const name = typeof cursor === "string" ? Buffer.from(cursor, "base64url").toString() : "";
  if (!/^\w{1,64}$/.test(name)) throw invalidField("/cursor", "is not a cursor of this list");
  return name;
}

export async function callTool(parts: ToolParts, context: RequestContext, params: Params): Promise<Result> {
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

/** A call that says nothing that could be called is a refused call all the same. @throws RpcError */
async function refuseParams(
  parts: ToolParts,
  context: RequestContext,
  path: string,
  message: string,
): Promise<Result> {
  const refused = perform(parts, context, { action: "tool.call", scope: null }, () =>
    Promise.reject<Result>(invalidField(path, message)),
  );
  return (await refused).value;
}

async function call(
  parts: ToolParts,
  context: RequestContext,
  shown: string,
  input: object,
): Promise<Result> {
  const { caller } = context.visit;
  const { names } = await parts.offers.of(caller);
  // What no tool is named like is looked up as it is: the refusal, and its evidence, name it so.
  const name = names.inward(shown) ?? shown;
  // A token that acts as an agent is refused agents that are there and those that are not in the same way.
  const agent = agentOf(name) ?? (caller.agent ? agentOf(name.replace("__", ".")) : undefined);
  if (agent !== undefined) return callAgent(parts, context, agent, input);
  const progress = progressOf(context);
  const { value, ledgerSeq } = await perform(parts, context, { action: "tool.call", scope: null }, (call) =>
    // What came as JSON is JSON.
    parts.calls.call(call, name, input as JsonObject, {
      abort: context.abort,
      ...(progress ? { progress } : {}),
    }),
  );
  if ("task" in value) return callAsked(parts, context, value, ledgerSeq);
  return withLedger(resultOf(value), ledgerSeq);
}

async function find(parts: ToolParts, context: RequestContext, input: object): Promise<Result> {
  const { value, ledgerSeq } = await perform(
    parts,
    context,
    { action: "tool.find", scope: null },
    async (call) => {
      if (!FindArguments.is(input)) return denyArguments(call, FindArguments.errors(input));
      const { reachable } = await parts.offers.of(context.visit.caller);
      const tools = findTools(reachable, input.query, input.limit).map((tool) => ({
        name: tool.name,
        title: tool.title,
        description: tool.description,
        input_schema: tool.inputSchema,
      }));
      const answer = { tools, of: reachable.length };
      return { content: [{ type: "text", text: JSON.stringify(answer) }], structuredContent: answer };
    },
  );
  return withLedger(value, ledgerSeq);
}
