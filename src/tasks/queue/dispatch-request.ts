import type { Agent } from "../../access/agents.ts";
import { hasScope } from "../../access/scopes.ts";
import type { JsonSchema } from "../../agents/index.ts";
import { invalidField, Problem } from "../../base/errors.ts";
import { isId } from "../../base/ids.ts";
import type { Call } from "../../gate/call.ts";
import { checkDocuments } from "../input/documents.ts";
import { namesDocument } from "../input/history.ts";
import { outputCheck } from "../input/output-schema.ts";
import { documentsOf, type InputMessage, storedInput } from "../input/task-input.ts";
import type { TaskParts } from "../parts.ts";
import { noTask, notFinished } from "../refusals.ts";
import { findTaskFacts } from "../rows/tasks.ts";
import { isFinal } from "../task.ts";
import type { NewTaskRequest } from "./accept.ts";

export interface DispatchRequest {
  readonly agent: string;
  /** Exactly one of `prompt` and `messages`. */
  readonly prompt?: string | undefined;
  readonly messages?: readonly InputMessage[] | undefined;
  readonly continues?: string | undefined;
  readonly outputSchema?: JsonSchema | undefined;
  readonly tier?: number;
  readonly tools?: readonly string[];
  readonly metadata?: Readonly<Record<string, string>>;
}

type CheckParts = Pick<
  TaskParts,
  "agents" | "budgets" | "db" | "modelGateway" | "tools" | "vault" | "workspaces"
>;

/**
 * Checks a request against the agent, its policy and boundary, the caller's rights and the budgets.
 * @throws Problem for any refusal that the contract defines
 */
export async function checkRequest(
  parts: CheckParts,
  call: Call,
  request: DispatchRequest,
): Promise<NewTaskRequest> {
  const { agents, budgets, db, modelGateway, tools, workspaces } = parts;
  const { caller } = call;
  const { workspaceId } = caller;
  const agent = await agents.get(workspaceId, request.agent);
  if (agent.status === "stopped") {
    const isAll = workspaces.isStopped(workspaceId);
    throw new Problem("agent_stopped", `The ${isAll ? "workspace" : `agent ${agent.name}`} is stopped.`);
  }
  const tier = request.tier ?? modelGateway.tiers.lowest(agent.tierPolicy);
  call.about({ tier });
  modelGateway.tiers.route(agent.tierPolicy, tier);
  const listed = request.tools ?? [];
  const user = { tools: agent.tools, scopes: caller.scopes };
  const turn = tools.turnToFind(workspaceId, listed, user);
  if (turn) await turn;
  tools.find(workspaceId, listed, user);
  const { prompt = null, messages = null, continues, outputSchema = null, metadata = {} } = request;
  const documents = await checkMessages(parts, call, agent, messages);
  if (continues !== undefined) await checkContinued(parts, call, agent, continues);
  if (documents !== undefined || continues !== undefined) call.about({ detail: { documents, continues } });
  if (outputSchema !== null && outputCheck(outputSchema) === null) {
    throw invalidField("/output_schema", UNCHECKABLE);
  }
  await budgets.check(db, { workspaceId, agent });
  const input = storedInput({ prompt, messages, outputSchema });
  return { agent, tier, tools: listed, metadata, input, continues };
}

const UNCHECKABLE =
  "cannot be checked: it is too large, is recursive, refers to another document, or uses one of the keywords that " +
  "are not supported (pattern, patternProperties, contains, dependentSchemas, dependentRequired, unevaluatedItems, " +
  "unevaluatedProperties, uniqueItems)";

/**
 * Reads the documents in messages for the caller, inside the agent's boundary.
 * @returns their ids for the entry, if there are any
 */
async function checkMessages(
  { vault }: CheckParts,
  call: Call,
  agent: Agent,
  messages: readonly InputMessage[] | null,
): Promise<string | undefined> {
  const documents = documentsOf(messages);
  if (documents.length === 0) return undefined;
  const { scopes, workspaceId } = call.caller;
  if (!hasScope(scopes, "vault:read")) {
    throw new Problem("scope_missing", "A document in a message needs a token with the scope vault:read.");
  }
  await checkDocuments(vault, workspaceId, agent.memoryScope, documents);
  return documents.map(({ id }) => id).join(" ");
}

async function checkContinued({ db }: CheckParts, call: Call, agent: Agent, id: string): Promise<void> {
  const { scopes, workspaceId, actor } = call.caller;
  const task = isId("task", id) ? await findTaskFacts(db, workspaceId, id) : undefined;
  if (task?.agentId !== agent.id) throw noTask(id);
  if (task.createdBy !== actor && !hasScope(scopes, "tasks:read")) {
    throw new Problem(
      "scope_missing",
      "To continue a task of another token, the token needs the scope tasks:read.",
    );
  }
  if (!isFinal(task.status)) throw notFinished(task);
  if (!hasScope(scopes, "vault:read") && (await namesDocument(db, task))) {
    throw new Problem(
      "scope_missing",
      "To continue a conversation with a document, the token needs the scope vault:read.",
    );
  }
}
