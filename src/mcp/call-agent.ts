import { createParser, type EventSourceMessage } from "eventsource-parser";
import Type, { type Static } from "typebox";
import { Problem } from "../base/errors.ts";
import { validator } from "../base/schema.ts";
import type { ToolProgress } from "../connectors/source.ts";
import type { EventReader } from "../tasks/events/hub.ts";
import { draining } from "../tasks/queue/accept.ts";
import { agentForbidden } from "../tasks/refusals.ts";
import { AgentArguments } from "./agent-tool.ts";
import { denyArguments } from "./arguments.ts";
import type { McpParts } from "./parts.ts";
import { perform, progressOf, type RequestContext, type RpcResult, withLedger } from "./request.ts";
import { RPC, RpcError } from "./rpc-error.ts";
import { CANCELLED } from "./session.ts";
import { type TaskWaiters, WAITS_PER_WORKSPACE } from "./waits.ts";

const Finished = validator(
  Type.Object({
    status: Type.Enum(["succeeded", "failed", "cancelled"]),
    output: Type.Union([Type.String(), Type.Null()]),
    credits_consumed: Type.Number(),
    error: Type.Union([Type.Null(), Type.Object({ code: Type.String(), message: Type.String() })]),
  }),
);

/** Maximum number of tools that a provider accepts in one request. */
const TOOLS = 128;
const RETRY_SECONDS = 5;
/** Characters of output between two progress notifications, so the client does not get every token twice. */
const OUTPUT_STEP = 200;

/**
 * Gives an agent a task, with every tool that both the agent and the caller may use, and waits for its end.
 * Cancelling the call cancels the task; a client that merely disconnects does not. If too many callers are waiting,
 * no task is created.
 */
export async function callAgent(
  parts: McpParts & { readonly waits: TaskWaiters },
  context: RequestContext,
  agent: string,
  input: object,
): Promise<RpcResult> {
  const { caller } = context.visit;
  const stop = new AbortController();
  const over = parts.waits.add(caller.workspaceId, () => stop.abort());
  try {
    return await dispatchAndWait(parts, context, { agent, input, stop: stop.signal, mayWait: over !== null });
  } finally {
    over?.();
  }
}

interface AgentCall {
  readonly agent: string;
  readonly input: object;
  /** Aborted when the process stops. */
  readonly stop: AbortSignal;
  readonly mayWait: boolean;
}

async function dispatchAndWait(
  parts: McpParts & { readonly waits: TaskWaiters },
  context: RequestContext,
  { agent, input, stop, mayWait }: AgentCall,
): Promise<RpcResult> {
  const { caller } = context.visit;
  const { value, ledgerSeq } = await perform(
    parts,
    context,
    { action: "task.dispatch", scope: "tasks:write" },
    async (call) => {
      if (!AgentArguments.is(input)) {
        return { denied: await denyArguments(call, AgentArguments.errors(input)) };
      }
      if (!mayWait) throw parts.waits.stopped ? draining() : tooMany();
      // Checked before the lookup: another agent's token must not learn whether such an agent exists.
      if (caller.agent && caller.agent.name !== agent) throw agentForbidden(caller.agent.name);
      const { tools } = await parts.agents.get(caller.workspaceId, agent);
      const reachable = await parts.registry.reachable(caller.workspaceId, {
        tools,
        scopes: caller.scopes,
      });
      const request = { agent, tools: reachable.slice(0, TOOLS).map(({ name }) => name), ...input };
      return parts.tasks.dispatch(call, request, undefined);
    },
  );
  if ("denied" in value) return withLedger(value.denied, ledgerSeq);
  const finished = await follow(parts, context, value.id, stop);
  const { status, output, credits_consumed, error } = finished;
  const text = output ?? error?.message ?? `The task was ${status}.`;
  const result = {
    content: [{ type: "text", text }],
    structuredContent: { task: value.id, status, output, credits_consumed },
    ...(status === "succeeded" ? {} : { isError: true }),
  };
  return withLedger(result, ledgerSeq);
}

function tooMany(): Problem {
  return new Problem(
    "rate_limited",
    `This workspace already has ${WAITS_PER_WORKSPACE} calls that wait for tasks. Retry when some are done.`,
    {
      headers: { "Retry-After": String(RETRY_SECONDS) },
    },
  );
}

async function follow(
  parts: McpParts,
  context: RequestContext,
  id: string,
  stop: AbortSignal,
): Promise<Static<typeof Finished.schema>> {
  const { visit } = context;
  const { signal } = context.abort;
  const { workspaceId } = visit.caller;
  const reader = parts.tasks.read({ workspaceId, id }, 0);
  const cancel = () => {
    reader.close();
    // Neither a disconnected client nor a stopping process cancels the task.
    if (signal.reason !== CANCELLED) return;
    const operation = { action: "task.cancel", scope: "tasks:write", counted: false, urgent: true } as const;
    // Never throws. A task that has already ended is not an error; anything else is recorded and logged by the gate.
    void parts.gate.perform(operation, visit.origin, visit, async (call) => {
      call.about({ task: id });
      await parts.tasks.cancel(call, id);
    });
  };
  const leave = () => reader.close();
  signal.addEventListener("abort", cancel, { once: true });
  stop.addEventListener("abort", leave, { once: true });
  if (signal.aborted) cancel();
  if (stop.aborted) leave();
  try {
    const end = await endOf(reader, reporter(progressOf(context)));
    if (end === null) {
      throw new RpcError(
        RPC.unavailable,
        `The server is stopping. The task ${id} continues when it starts again.`,
        {
          code: "draining",
          task: id,
        },
      );
    }
    return end;
  } finally {
    signal.removeEventListener("abort", cancel);
    stop.removeEventListener("abort", leave);
    reader.close();
  }
}

/** Null if the events stop before the task has ended, because the process stops or the call was cancelled. */
async function endOf(
  reader: EventReader,
  tell: (event: string, data: unknown) => void,
): Promise<Static<typeof Finished.schema> | null> {
  let end: Static<typeof Finished.schema> | null = null;
  const decoder = new TextDecoder();
  const parser = createParser({
    onEvent({ event = "", data: text }: EventSourceMessage) {
      const data: unknown = JSON.parse(text);
      if (event === "task.finished" && Finished.is(data)) end = data;
      else tell(event, data);
    },
  });
  for (let frames = await reader.next(); frames !== null; frames = await reader.next()) {
    for (const frame of frames) parser.feed(decoder.decode(frame, { stream: true }));
  }
  return end;
}

/** Turns a task's events into progress messages. */
function reporter(
  progress: ((progress: ToolProgress) => void) | undefined,
): (event: string, data: unknown) => void {
  if (!progress) return () => {};
  let step = 0;
  let characters = 0;
  let told = 0;
  const say = (message: string) => {
    step += 1;
    progress({ progress: step, message });
  };
  const field = (data: unknown, name: string): string => {
    const value: unknown = typeof data === "object" && data !== null ? Reflect.get(data, name) : undefined;
    return typeof value === "string" ? value : "";
  };
  return (event, data) => {
    if (event === "task.created") say("queued");
    else if (event === "task.started") say(`running on ${field(data, "model")}`);
    else if (event === "tool.call") say(`calling ${field(data, "tool")}`);
    else if (event === "tool.result") say(`${field(data, "tool")} ${field(data, "status")}`);
    else if (event === "model.fallback") say(`${field(data, "from")} failed, trying ${field(data, "to")}`);
    else if (event === "output.delta") {
      characters += field(data, "text").length;
      if (characters - told < OUTPUT_STEP && told > 0) return;
      told = characters;
      say(`writing, ${characters} characters`);
    }
  };
}
