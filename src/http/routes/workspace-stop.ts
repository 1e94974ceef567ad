import { Elysia } from "elysia";
import Type from "typebox";
import type { Caller } from "../../access/caller.ts";
import type { Workspace, Workspaces } from "../../access/workspaces.ts";
import type { Clock } from "../../base/clock.ts";
import { Problem } from "../../base/errors.ts";
import type { Call } from "../../gate/call.ts";
import { applyStop } from "../../gate/record-stop.ts";
import { type EndpointContext, endpoint } from "../endpoint.ts";
import { requireOperator, viewName } from "./workspace.ts";

export interface StopRouteParts {
  readonly workspaces: Workspaces;
  /** Ends a workspace's queued tasks, running tasks and calls. */
  endWork(workspaceId: number): Promise<void>;
  /**
   * Resolves when the ends of all stopped work are recorded.
   * @throws StoreUnavailable if they cannot be
   */
  endsWritten(workspaceId: number): Promise<void>;
  readonly clock: Clock;
}

/** The extent of a stop, as recorded in the entry, if it is not the stop of an agent. */
type StopExtent = "workspace" | "node";

const oversight = {
  scope: "approvals:write",
  bodyOptional: true,
  body: Type.Object({}, { additionalProperties: false }),
  status: 200,
} as const;

/** Stops a whole workspace. Each of its agents counts as stopped until the workspace is resumed. */
export function workspaceStopRoutes(endpoints: EndpointContext, parts: StopRouteParts) {
  const { workspaces } = parts;
  const tag = "Workspace";

  const stop = endpoint(
    endpoints,
    {
      ...oversight,
      tag,
      action: "oversight.stop",
      operationId: "workspace_stop",
      summary: "Stop the workspace: cancels all of its tasks and calls, and refuses new ones",
      urgent: true,
    },
    async ({ call }) => {
      refuseAgentTokens(call.caller);
      await stopOne(parts, call, "workspace");
      return { status: 200, body: viewName(workspaces.get(call.caller.workspaceId)) };
    },
  );

  const resume = endpoint(
    endpoints,
    {
      ...oversight,
      tag,
      action: "oversight.resume",
      operationId: "workspace_resume",
      summary: "Resume a stopped workspace; agents that were stopped individually stay stopped",
    },
    async ({ call }) => {
      refuseAgentTokens(call.caller);
      await resumeOne(parts, call, "workspace");
      return { status: 200, body: viewName(workspaces.get(call.caller.workspaceId)) };
    },
  );

  return new Elysia({ prefix: "/v1/workspace" })
    .post("/stop", stop.handle, stop.hook)
    .post("/resume", resume.handle, resume.hook);
}

/** The same for all workspaces of the node, by its operator. Neither in the contract nor in the API document. */
export function nodeStopRoutes(endpoints: EndpointContext, parts: StopRouteParts) {
  const { workspaces } = parts;
  const tag = "Operator";
  const answer = () => ({
    status: 200,
    body: { data: workspaces.list().map(viewName), next_cursor: null },
  });
  /** The caller's own workspace gets the call's entry; each other workspace gets its own. */
  const callIn = (call: Call, workspace: Workspace) =>
    workspace.id === call.caller.workspaceId ? call : call.elsewhere(workspace);

  const stop = endpoint(
    endpoints,
    { ...oversight, tag, action: "oversight.stop", summary: "Stop every workspace", urgent: true },
    async ({ call }) => {
      requireOperator(call.caller.actor);
      // All workspaces are halted before any of them waits for the store.
      const stops = workspaces.list().map((each) => stopOne(parts, callIn(call, each), "node"));
      await allOf(stops);
      return answer();
    },
  );

  const resume = endpoint(
    endpoints,
    { ...oversight, tag, action: "oversight.resume", summary: "Resume every stopped workspace" },
    async ({ call }) => {
      requireOperator(call.caller.actor);
      const stopped = workspaces.list().filter(({ status }) => status === "stopped");
      await allOf(stopped.map((each) => resumeOne(parts, callIn(call, each), "node")));
      return answer();
    },
  );

  return new Elysia({ prefix: "/operator/workspaces" })
    .post("/stop", stop.handle, { ...stop.hook, detail: { hide: true } })
    .post("/resume", resume.handle, { ...resume.hook, detail: { hide: true } });
}

/** Takes effect immediately, even if the store cannot be written. */
async function stopOne({ workspaces, endWork, clock }: StopRouteParts, call: Call, extent: StopExtent) {
  const { workspaceId } = call.caller;
  call.about({ detail: { extent } });
  const decision = await call.decide("stop", clock);
  await applyStop(call, {
    decision,
    halt: workspaces.halt(workspaceId),
    write: async (tx) => void (await workspaces.setStatus(tx, workspaceId, "stopped")),
    endWork: () => endWork(workspaceId),
  });
}

async function resumeOne({ workspaces, endsWritten, clock }: StopRouteParts, call: Call, extent: StopExtent) {
  const { workspaceId } = call.caller;
  call.about({ detail: { extent } });
  await call.decide("resume", clock);
  await call.commitEarlierDecisions();
  // Otherwise a crash could leave tasks behind that nothing keeps from running.
  await endsWritten(workspaceId);
  // A stop that arrives while this is written is newer and must stay in effect.
  const halt = workspaces.haltOf(workspaceId);
  await call.commit(async (tx, record) => {
    await workspaces.setStatus(tx, workspaceId, "active");
    tx.onCommit(() => halt?.lift());
    await record();
  });
}

/**
 * Waits for all, even if one fails.
 * @throws the first failure, once all are done
 */
async function allOf(work: readonly Promise<void>[]): Promise<void> {
  for (const each of await Promise.allSettled(work)) if (each.status === "rejected") throw each.reason;
}

/** An agent's token can only narrow what the agent may do, so it cannot stop or resume a workspace. */
function refuseAgentTokens({ agent }: Caller): void {
  if (agent) {
    throw new Problem(
      "agent_forbidden",
      `This token acts as ${agent.name} and cannot stop or resume a workspace.`,
    );
  }
}
