import { Elysia } from "elysia";
import Type from "typebox";
import { isCommandLine } from "../../access/operator.ts";
import { WORKSPACE_NAME, type Workspace, type Workspaces } from "../../access/workspaces.ts";
import { timestamp } from "../../base/clock.ts";
import { MICROS_PER_CREDIT, toMicros } from "../../base/credits.ts";
import { invalidField, Problem } from "../../base/errors.ts";
import type { Budgets } from "../../gate/budget.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import { type EndpointContext, endpoint } from "../endpoint.ts";

export const WorkspaceChange = Type.Object(
  {
    limits: Type.Optional(
      Type.Object(
        {
          requests_per_minute: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000_000 })),
          concurrent_tasks: Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000 })),
          enforcement: Type.Optional(Type.Enum(["soft", "enforced"])),
        },
        { additionalProperties: false },
      ),
    ),
    budget: Type.Optional(
      Type.Object(
        { credits_per_month: Type.Optional(Type.Union([Type.Number({ minimum: 0 }), Type.Null()])) },
        { additionalProperties: false },
      ),
    ),
  },
  { additionalProperties: false },
);
const WorkspaceCreate = Type.Object(
  { name: Type.String({ pattern: WORKSPACE_NAME }) },
  { additionalProperties: false },
);

/** A workspace's current usage. */
export interface WorkspaceUsage {
  readonly tasksRunning: number;
  readonly tasksQueued: number;
  /** Micro-credits in the current month (UTC). */
  readonly creditsThisMonth: number;
}

export interface WorkspaceRouteParts {
  readonly workspaces: Workspaces;
  readonly ledger: Pick<Ledger, "begin">;
  readonly budgets: Pick<Budgets, "changed">;
  usage(workspaceId: number): Promise<WorkspaceUsage>;
}

export function workspaceRoutes(
  endpoints: EndpointContext,
  { workspaces, budgets, usage }: WorkspaceRouteParts,
) {
  const tag = "Workspace";
  const view = async (workspace: Workspace) => viewWorkspace(workspace, await usage(workspace.id));

  const read = endpoint(
    endpoints,
    {
      action: "workspace.read",
      scope: "settings:write",
      summary: "Read the workspace's limits, budget and usage",
      tag,
      status: 200,
    },
    async ({ call }) => ({ status: 200, body: await view(workspaces.get(call.caller.workspaceId)) }),
  );

  const change = endpoint(
    endpoints,
    {
      action: "config.change",
      scope: "settings:write",
      summary: "Change any part of the limits and the budget",
      tag,
      body: WorkspaceChange,
      status: 200,
    },
    async ({ call, body }) => {
      const { agent } = call.caller;
      // An agent's token can only narrow what the agent may do, so it cannot set limits, not even its own agent's.
      if (agent) {
        throw new Problem("agent_forbidden", `This token acts as ${agent.name} and cannot change settings.`);
      }
      const credits = body.budget?.credits_per_month;
      const changed = await call.commit(async (tx, record) => {
        const { workspaceId } = call.caller;
        const { creditsPerMonth: before } = workspaces.get(workspaceId);
        const workspace = await workspaces.change(tx, workspaceId, {
          requestsPerMinute: body.limits?.requests_per_minute,
          concurrentTasks: body.limits?.concurrent_tasks,
          enforcement: body.limits?.enforcement,
          creditsPerMonth: credits == null ? credits : micros(credits),
        });
        await record({
          detail: { ...body.limits, ...(credits === undefined ? {} : { budget: String(credits) }) },
        });
        const payer = { workspaceId, agent: null };
        await budgets.changed(tx, payer, { before, after: workspace.creditsPerMonth });
        return workspace;
      });
      return { status: 200, body: await view(changed) };
    },
  );

  return new Elysia({ prefix: "/v1/workspace" })
    .get("", read.handle, read.hook)
    .patch("", change.handle, change.hook);
}

/**
 * The node's workspaces: only for its operator, on the machine itself. Neither in the contract nor in the API
 * document.
 */
export function operatorRoutes(
  endpoints: EndpointContext,
  { workspaces, ledger }: Pick<WorkspaceRouteParts, "workspaces" | "ledger">,
) {
  const tag = "Operator";

  const list = endpoint(
    endpoints,
    { action: "workspace.list", scope: "settings:write", summary: "List workspaces", tag, status: 200 },
    async ({ call }) => {
      requireOperator(call.caller.actor);
      return { status: 200, body: { data: workspaces.list().map(viewName), next_cursor: null } };
    },
  );

  const create = endpoint(
    endpoints,
    {
      action: "workspace.create",
      scope: "settings:write",
      summary: "Create a workspace",
      tag,
      body: WorkspaceCreate,
      status: 201,
    },
    async ({ call, body }) => {
      requireOperator(call.caller.actor);
      call.about({ detail: { workspace: body.name } });
      const workspace = await call.commit(async (tx) => {
        const made = await workspaces.create(tx, body.name);
        await ledger.begin(tx, made.id);
        return made;
      });
      return { status: 201, body: viewName(workspace) };
    },
  );

  return new Elysia({ prefix: "/operator/workspaces" })
    .get("", list.handle, { ...list.hook, detail: { hide: true } })
    .post("", create.handle, { ...create.hook, detail: { hide: true } });
}

export function requireOperator(actor: string): void {
  if (!isCommandLine(actor)) throw new Problem("not_found", "There is nothing here.");
}

function micros(credits: number): number {
  const value = toMicros(credits);
  if (value === undefined) {
    throw invalidField("/budget/credits_per_month", "must be a number of credits, exact to a millionth");
  }
  return value;
}

/** The view of a workspace for callers that may see no more of it. */
export function viewName(workspace: Workspace) {
  const { name, status, createdAt } = workspace;
  return { name, status, created_at: timestamp(createdAt) };
}

/** The view of a workspace for callers that may change its settings. */
export function viewWorkspace(workspace: Workspace, use: WorkspaceUsage) {
  const { limits, creditsPerMonth } = workspace;
  return {
    name: workspace.name,
    status: workspace.status,
    limits: {
      requests_per_minute: limits.requestsPerMinute,
      concurrent_tasks: limits.concurrentTasks,
      enforcement: limits.enforcement,
    },
    budget: { credits_per_month: creditsPerMonth === null ? null : creditsPerMonth / MICROS_PER_CREDIT },
    usage: {
      tasks_running: use.tasksRunning,
      tasks_queued: use.tasksQueued,
      credits_this_month: use.creditsThisMonth / MICROS_PER_CREDIT,
    },
  };
}
