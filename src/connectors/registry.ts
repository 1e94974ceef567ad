import { mayUseTool, toolScopeCost } from "../access/scopes.ts";
import { defineTool, type Tool, ToolError } from "../agents/index.ts";
import { type FieldError, invalidField, Problem } from "../base/errors.ts";
import { grantCost, matchesAny, restrictionCost, restrictsTool } from "../base/glob.ts";
import { takeTurn } from "../base/inflow.ts";
import { redact } from "../base/log.ts";
import type { ToolActor } from "./builtin/tool.ts";
import type { Catalogue, CatalogueTool } from "./catalogue.ts";
import type { ContentBlock, ToolAnswer } from "./source.ts";
import { ToolRule, type ToolSubset } from "./tool-rule.ts";
import { definitionHash } from "./tools/definition.ts";
import { inputSchemaOf } from "./tools/kept-tool.ts";

/** The globs of a caller that acts as no agent. */
export const EVERY_TOOL: readonly string[] = ["*"];

/** What an agent's `tools`, a token's scopes and an agent's `approvals` decide about whole lists of tools. */
const ALLOWED = new ToolRule({ test: matchesAny, cost: grantCost });
const IN_SCOPE = new ToolRule({ test: mayUseTool, cost: toolScopeCost });
const APPROVED = new ToolRule({ test: restrictsTool, cost: restrictionCost });

/** The rights a tool is used with: the agent's, narrowed by the token's. */
export interface ToolUser {
  /** Globs of the agent; `EVERY_TOOL` if there is none. */
  readonly tools: readonly string[];
  /** Scopes of the token. */
  readonly scopes: readonly string[];
}

/**
 * Characters of the definitions of a task's tools (name, description, schema), which are all sent with each request
 * to a model. More than most models' context can hold.
 */
const DEFINITIONS = 1024 * 1024;

/**
 * Decides which tools a caller may use. Checked when a task is accepted, when it starts, before each call, and for
 * each listing.
 */
export class ToolRegistry {
  readonly catalogue: Catalogue;

  constructor(catalogue: Catalogue) {
    this.catalogue = catalogue;
  }

  /**
   * The tools with these names, in order, for a task.
   * @throws Problem 422 `unknown_tool`, 403 `tool_forbidden`; 422 `validation_failed` if their definitions are too
   *   long together
   */
  find(workspaceId: number, names: readonly string[], user: ToolUser): readonly CatalogueTool[] {
    // Look up all names first, so that the order of the tools does not decide which error is returned.
    const found = names.map((name, index) => {
      const tool = this.catalogue.find(workspaceId, name);
      if (tool) return tool;
      throw unknown(name, [{ path: `/tools/${index}`, message: "is not a tool of this workspace" }]);
    });
    for (const tool of found) refuse(tool, user);
    refuseLong(found);
    return found;
  }

  /** One tool by its name. @throws Problem as `find` does */
  get(workspaceId: number, name: string, user: ToolUser): CatalogueTool {
    const tool = this.catalogue.find(workspaceId, name);
    if (!tool) throw unknown(name);
    refuse(tool, user);
    return tool;
  }

  /** Whether a person has to approve a call: by the agent's own globs, otherwise by the connector's annotations. */
  needsApproval(workspaceId: number, name: string, approvals: readonly string[] | null): boolean {
    if (approvals !== null) return restrictsTool(approvals, name);
    return this.catalogue.find(workspaceId, name)?.offered.destructive === true;
  }

  /** The hash of a tool's current definition (`definitionHash`). */
  definitionOf(workspaceId: number, name: string): string | undefined {
    const tool = this.catalogue.find(workspaceId, name);
    return tool && definitionHash(tool);
  }

  /** Whether a call that may have been made can safely be repeated, according to the tool's annotations. */
  mayRepeat(workspaceId: number, name: string): boolean {
    const annotations = this.catalogue.find(workspaceId, name)?.offered.annotations;
    return annotations?.readOnlyHint === true || annotations?.idempotentHint === true;
  }

  /** The same as `find`, as the framework's tools, which act for `actor`. @throws Problem as `find` does */
  resolve(workspaceId: number, names: readonly string[], user: ToolUser, actor: ToolActor): readonly Tool[] {
    return this.find(workspaceId, names, user).map((tool) => agentTool(tool, actor));
  }

  /** Whether this tool may be used now. */
  allows(workspaceId: number, name: string, user: ToolUser): boolean {
    const tool = this.catalogue.find(workspaceId, name);
    return tool !== undefined && refusalOf(tool, user) === undefined;
  }

  /** Every tool that may be used, by name. Decided in turns with other work, and only once for the same lists. */
  async reachable(workspaceId: number, { tools, scopes }: ToolUser): Promise<readonly CatalogueTool[]> {
    const listed = this.catalogue.list(workspaceId);
    const allowed = await ALLOWED.of(workspaceId, listed, tools);
    const inScope = await IN_SCOPE.of(workspaceId, listed, scopes);
    return listed.filter((_, index) => allowed.has(index) && inScope.has(index));
  }

  /**
   * Takes a turn of the event loop for `find`, since a request may name many tools. MUST be awaited before it.
   * @returns undefined if there is no wait
   */
  turnToFind(
    workspaceId: number,
    names: readonly string[],
    { tools, scopes }: ToolUser,
  ): Promise<void> | undefined {
    if (names.length === 0) return undefined;
    return takeTurn(workspaceId, { bytes: names.length * (grantCost(tools) + toolScopeCost(scopes)) });
  }
}

/** The tools of a list that an agent may use. Decided as `reachable` is. */
export function toolsAllowed(
  workspaceId: number,
  tools: readonly CatalogueTool[],
  globs: readonly string[],
): Promise<ToolSubset> {
  return ALLOWED.of(workspaceId, tools, globs);
}

/** The tools of a list whose calls need a person's approval, by these globs of an agent. Decided as `reachable` is. */
export function toolsToApprove(
  workspaceId: number,
  tools: readonly CatalogueTool[],
  globs: readonly string[],
): Promise<ToolSubset> {
  return APPROVED.of(workspaceId, tools, globs);
}

/**
 * Names given by clients and models stay in the ledger forever, so only possible tool names are recorded, never a
 * secret sent in place of one.
 */
export function isToolName(name: string): boolean {
  return /^[\w.-]{1,128}$/.test(name) && redact(name) === name;
}

function unknown(name: string, errors?: readonly FieldError[]): Problem {
  const options = errors ? { errors } : {};
  return new Problem("unknown_tool", `There is no tool named ${JSON.stringify(name)}.`, options);
}

function refuse(tool: CatalogueTool, user: ToolUser): void {
  const refusal = refusalOf(tool, user);
  if (refusal !== undefined) throw new Problem("tool_forbidden", refusal);
}

function refuseLong(tools: readonly CatalogueTool[]): void {
  let length = 0;
  for (const { name, offered } of tools) {
    length += name.length + offered.description.length + offered.inputSchemaJson.length;
  }
  if (length <= DEFINITIONS) return;
  throw invalidField(
    "/tools",
    `the definitions of these ${tools.length} tools have ${length} characters in total; the limit is ${DEFINITIONS}. Name fewer tools`,
  );
}

function refusalOf({ name, connector, isAuthorised }: CatalogueTool, user: ToolUser): string | undefined {
  if (!isAuthorised) return `The connector ${connector} is not authorised for ${name}.`;
  if (!matchesAny(user.tools, name)) return `The agent may not use ${name}.`;
  if (!mayUseTool(user.scopes, name)) return `The token's scopes do not include tools:${name}.`;
  return undefined;
}

function agentTool(tool: CatalogueTool, actor: ToolActor): Tool {
  const { name, offered } = tool;
  return defineTool({
    name,
    description: offered.description,
    inputSchema: inputSchemaOf(offered),
    destructive: offered.destructive,
    ...(offered.annotations?.readOnlyHint === true || offered.annotations?.idempotentHint === true
      ? { idempotent: true }
      : {}),
    validate: (input) => tool.validate(input),
    async execute(input, { signal, callId }) {
      const answer = await tool.call(actor, input, { signal, callId });
      if (answer.isError === true) throw new ToolError(textOf(answer) || `The tool ${name} failed.`);
      return answer.structuredContent ?? textOf(answer);
    },
  });
}

/** The text of an answer that a model can read. Other content is only mentioned. */
export function textOf(answer: ToolAnswer): string {
  return answer.content.map(blockText).join("\n");
}

function blockText(block: ContentBlock): string {
  if (typeof block.text === "string") return block.text;
  const { resource } = block;
  if (typeof resource === "object" && resource !== null && "text" in resource) return String(resource.text);
  if (typeof block.uri === "string") return `[${block.type}: ${block.uri}]`;
  return `[${block.type}${typeof block.mimeType === "string" ? ` ${block.mimeType}` : ""}]`;
}
