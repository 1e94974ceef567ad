import { describeArgumentErrors } from "../../base/errors.ts";
import { findExcess, MAX_MEMBERS, MAX_NESTING } from "../../base/json-limits.ts";
import { cancelled, ToolError } from "../errors.ts";
import type { AgentEvent } from "../events.ts";
import { type AfterToolCall, callAfter, callBefore, type RefusalCode } from "../hooks.ts";
import type { JsonObject, JsonValue, ToolCall, ToolResult, ToolStatus } from "../message.ts";
import { isJsonObject } from "../model/prompt.ts";
import type { RunState } from "../run.ts";
import type { Tool } from "./tool.ts";

type ToolCallOutcome = Omit<AfterToolCall, "id" | "tool" | "arguments">;

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
  const info = { id, tool: name, arguments: call.arguments, ...outcome };
  await callAfter(`The call to ${name}`, () => run.options.hooks.afterToolCall?.(info));
  yield { type: "tool.result", id, tool: name, status, durationMs, output };
  return { id, tool: name, status, output };
}

async function outcomeOf(run: RunState, call: ToolCall): Promise<ToolCallOutcome> {
  const { toolbox, hooks } = run.options;
  const refused = (code: RefusalCode, output: string): ToolCallOutcome => {
    return { status: "denied", code, output: toolOutput(run, output), dispatched: false, durationMs: 0 };
  };
  const tool = toolbox.find(call.tool);
  if (!tool) {
    const names = toolbox.offered().map(({ name }) => name);
    const known = names.length === 0 ? "No tools are available." : `The tools are: ${names.join(", ")}.`;
    return refused("unknown_tool", `There is no tool ${JSON.stringify(call.tool)}. ${known}`);
  }
  if (!toolbox.isAllowed(tool.name))
    return refused("tool_forbidden", `The policy does not allow the tool ${tool.name}.`);
  if (!isJsonObject(call.arguments)) return refused("invalid_arguments", unreadable(call.arguments));
  const problem = invalid(tool, call.arguments);
  if (problem !== undefined) return refused("invalid_arguments", problem);
  const { id, arguments: input } = call;
  const info = { id, tool: tool.name, arguments: input, signal: run.signal };
  const decision = await callBefore(`The call to ${tool.name}`, run.signal, () =>
    hooks.beforeToolCall?.(info),
  );
  const reason = decision?.deny;
  if (reason !== undefined) return refused("refused_by_host", `The call was denied: ${reason}`);
  if (run.signal.aborted) return refused("cancelled", "The run was cancelled before the tool was called.");
  return execute(run, tool, id, input);
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
  const { now } = run.options;
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
    return ended("succeeded", toolOutput(run, await Promise.race([working, stopped])));
  } catch (error) {
    if (run.signal.aborted) {
      return ended("unknown", "The run was cancelled while the tool was running.", error);
    }
    // Other errors were not written for the model, and may contain secrets.
    const message = error instanceof ToolError ? error.message : `The tool ${tool.name} failed.`;
    return ended("failed", toolOutput(run, message), error);
  } finally {
    run.signal.removeEventListener("abort", stop);
  }
}

/**
 * A tool's return value as shown to the model: text unchanged, everything else as in JSON (undefined is null). If it
 * is too long, it becomes truncated text with a note.
 * @throws TypeError if JSON cannot represent the value
 */
function toolOutput(run: RunState, value: unknown): JsonValue {
  const limit = run.options.maxToolOutputCharacters;
  if (typeof value === "string") return cut(value, limit);
  const text = JSON.stringify(value) ?? "null";
  if (text.length > limit) return cut(text, limit);
  // Parsed again, so that later changes by the tool do not affect the conversation.
  return JSON.parse(text);
}

function cut(text: string, limit: number): string {
  if (text.length <= limit) return text;
  return `${text.slice(0, limit)}\n[cut: the first ${limit} of ${text.length} characters]`;
}
