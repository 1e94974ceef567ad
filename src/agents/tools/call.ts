import { describeArgumentErrors } from "../../base/errors.ts";
import { findExcess, MAX_MEMBERS, MAX_NESTING } from "../../base/json-limits.ts";
import { AgentDenied, cancelled, RunFailure, ToolError } from "../errors.ts";
import type { AgentEvent } from "../events.ts";
import type { RefusalCode } from "../hooks.ts";
import type { JsonObject, JsonValue, ToolCall, ToolResult, ToolStatus } from "../message.ts";
import { isJsonObject } from "../model/prompt.ts";
import { isPromise, type RunState } from "../run.ts";
import { toolOutput } from "./output.ts";
import type { Tool } from "./tool.ts";

interface ToolCallOutcome {
  readonly status: ToolStatus;
  readonly output: JsonValue;
  readonly dispatched: boolean;
  readonly code?: RefusalCode;
  readonly durationMs: number;
  readonly error?: unknown;
}

/**
 * Makes one call: validates it, asks the hook, calls the tool, reports to the hook. Whatever the tool does, the model
 * gets a result.
 * @throws RunFailure if a hook fails
 */
export async function* callTool(run: RunState, call: ToolCall): AsyncGenerator<AgentEvent, ToolResult> {
  const { id, tool: name } = call;
  yield { type: "tool.call", id, tool: name, arguments: call.arguments };
  // The run may have been stopped while the consumer was handling the event.
  if (run.signal.aborted) throw cancelled(run.signal);
  const outcome = await outcomeOf(run, call);
  const { status, output, durationMs } = outcome;
  await after(run, call, outcome);
  yield { type: "tool.result", id, tool: name, status, durationMs, output };
  return { id, tool: name, status, output };
}

async function outcomeOf(run: RunState, call: ToolCall): Promise<ToolCallOutcome> {
  const { toolbox, policy, maxToolOutputCharacters: limit } = run.settings;
  const refused = (code: RefusalCode, output: string): ToolCallOutcome => {
    return { status: "denied", code, output: toolOutput(output, limit), dispatched: false, durationMs: 0 };
  };
  const allows = (name: string): boolean => policy.allowTool?.(name) ?? true;
  const tool = toolbox.find(call.tool);
  if (!tool) {
    const names = toolbox.tools.map(({ name }) => name).filter(allows);
    const known = names.length === 0 ? "No tools are available." : `The tools are: ${names.join(", ")}.`;
    return refused("unknown_tool", `There is no tool ${JSON.stringify(call.tool)}. ${known}`);
  }
  if (!allows(tool.name))
    return refused("tool_forbidden", `The policy does not allow the tool ${tool.name}.`);
  if (!isJsonObject(call.arguments)) return refused("invalid_arguments", unreadable(call.arguments));
  const problem = invalid(tool, call.arguments);
  if (problem !== undefined) return refused("invalid_arguments", problem);
  const reason = await before(run, call);
  if (reason !== undefined) return refused("refused_by_host", `The call was denied: ${reason}`);
  if (run.signal.aborted) return refused("cancelled", "The run was cancelled before the tool was called.");
  return execute(run, tool, call.id, call.arguments);
}

function unreadable(given: JsonValue): string {
  const excess = typeof given === "string" ? findExcess(given) : null;
  if (excess === null) return "The arguments are not a valid JSON object.";
  return excess === "levels"
    ? `The arguments are nested too deeply: at most ${MAX_NESTING} levels are allowed.`
    : `The arguments have too many members: at most ${MAX_MEMBERS} are allowed.`;
}

function invalid(tool: Tool, input: JsonObject): string | undefined {
  const errors = tool.validate(input);
  return errors.length === 0 ? undefined : describeArgumentErrors(errors);
}

async function execute(
  run: RunState,
  tool: Tool,
  callId: string,
  input: JsonObject,
): Promise<ToolCallOutcome> {
  const { now, maxToolOutputCharacters } = run.settings;
  const startedAt = now();
  const ended = (status: ToolStatus, output: JsonValue, error?: unknown): ToolCallOutcome => ({
    status,
    output,
    dispatched: true,
    durationMs: now() - startedAt,
    ...(error === undefined ? {} : { error }),
  });
  let stop = (): void => {};
  try {
    const stopped = new Promise<never>((_resolve, reject) => {
      stop = () => reject(run.signal.reason);
      run.signal.addEventListener("abort", stop, { once: true });
    });
    const working = (async () => tool.execute(input, { signal: run.signal, callId }))();
    return ended("succeeded", toolOutput(await Promise.race([working, stopped]), maxToolOutputCharacters));
  } catch (error) {
    if (run.signal.aborted) {
      return ended("unknown", "The run was cancelled while the tool was running.", error);
    }
    // Other errors were not written for the model, and may contain secrets.
    const message = error instanceof ToolError ? error.message : `The tool ${tool.name} failed.`;
    return ended("failed", toolOutput(message, maxToolOutputCharacters), error);
  } finally {
    run.signal.removeEventListener("abort", stop);
  }
}

/** The hook's reason for refusing the call, if it does. */
async function before(run: RunState, call: ToolCall): Promise<string | undefined> {
  const { id, tool, arguments: input } = call;
  try {
    const given = run.settings.hooks.beforeToolCall?.({ id, tool, arguments: input, signal: run.signal });
    const decision = isPromise(given) ? await given : given;
    return decision?.deny;
  } catch (cause) {
    if (cause instanceof AgentDenied) throw new RunFailure("denied", cause.message, cause);
    if (run.signal.aborted) throw cancelled(run.signal);
    throw new RunFailure("internal", `The call to ${tool} could not be prepared.`, cause);
  }
}

async function after(run: RunState, call: ToolCall, outcome: ToolCallOutcome): Promise<void> {
  const { id, tool, arguments: input } = call;
  try {
    const done = run.settings.hooks.afterToolCall?.({ id, tool, arguments: input, ...outcome });
    if (isPromise(done)) await done;
  } catch (cause) {
    // A call without evidence must not be followed by another, and its result must not be used.
    throw new RunFailure("internal", `The call to ${tool} could not be recorded.`, cause);
  }
}
