import { AgentDenied, type Hooks, isJsonObject, type ToolCall } from "../../agents/index.ts";
import type { Clock } from "../../base/clock.ts";
import { describeArgumentErrors } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { ToolActor } from "../../connectors/builtin/tool.ts";
import { invoke } from "../../connectors/invoke.ts";
import { type ToolRegistry, textOf } from "../../connectors/registry.ts";
import type { ToolAnswer } from "../../connectors/source.ts";
import { definitionHash } from "../../connectors/tools/definition.ts";
import { AwaitingApproval } from "../approvals/present.ts";
import type { TaskEnding } from "../ending/finish.ts";
import { deniedEnding, failure } from "../ending/interruption.ts";
import type { DirectTaskCall } from "./progress.ts";

type Hook<Name extends keyof Hooks> = NonNullable<Hooks[Name]>;
type CallOutcome = Omit<Parameters<Hook<"afterToolCall">>[0], "id" | "tool" | "arguments">;

export interface OwnCallRun {
  readonly tools: ToolRegistry;
  readonly actor: ToolActor;
  readonly before: Hook<"beforeToolCall">;
  readonly after: Hook<"afterToolCall">;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly log: Log;
  /** Receives the tool's answer in full. */
  answered(answer: ToolAnswer): void;
  /** Receives the result of the call once it is on disk. */
  ended(call: ToolCall, status: string, durationMs: number): void;
}

/**
 * Runs a task that consists of one tool call made by its client, without any model. The tool's answer is the task's
 * output. If a person denies the call or nobody decides, the task ends as `cancelled` rather than failed, because
 * nothing was tried, and the output gives the reason.
 */
export async function runClientCall(
  run: OwnCallRun,
  { call, result }: DirectTaskCall,
): Promise<TaskEnding | "awaiting"> {
  // An earlier process made the call, or died while it was in flight.
  if (result?.status === "unknown") return failure("interrupted", String(result.output));
  if (result) {
    const { output } = result;
    const text = typeof output === "string" ? output : JSON.stringify(output);
    return endingOf(result.status, text);
  }
  try {
    const { ended, text } = await make(run, call);
    await run.after({ ...call, ...ended });
    run.ended(call, ended.status, ended.durationMs);
    return endingOf(ended.status, text);
  } catch (error) {
    if (error instanceof AwaitingApproval) return "awaiting";
    if (error instanceof AgentDenied) return deniedEnding(error);
    // The call was waiting for a budget. The interruption determines how the task ends.
    if (run.signal.aborted) return failure("interrupted", "The call was ended before it was made.");
    throw error;
  }
}

function endingOf(status: string, text: string): TaskEnding {
  const output = text.toWellFormed();
  if (status === "denied") return { status: "cancelled", error: null, output };
  return { status: status === "succeeded" ? "succeeded" : "failed", error: null, output };
}

interface CallWithText {
  readonly ended: CallOutcome;
  /** The answer as text. */
  readonly text: string;
}

async function make(run: OwnCallRun, { id, tool: name, arguments: input }: ToolCall): Promise<CallWithText> {
  const { tools, actor, signal, clock } = run;
  const tool = tools.catalogue.find(actor.workspaceId, name);
  if (!tool) return refused("unknown_tool", `The tool ${name} no longer exists.`);
  if (!isJsonObject(input)) return refused("invalid_arguments", "The arguments are not an object.");
  const faults = tool.validate(input);
  if (faults.length > 0) {
    return refused("invalid_arguments", describeArgumentErrors(faults));
  }
  const denied = await run.before({ id, tool: name, arguments: input, signal });
  if (denied) return refused("refused_by_host", `The call was denied: ${denied.deny}`);
  if (signal.aborted) return refused("cancelled", "The call was cancelled before it was made.");
  // The tool that was checked, and may have been approved, is `tool`.
  const current = tools.catalogue.find(actor.workspaceId, name);
  if (current !== tool && (!current || definitionHash(current) !== definitionHash(tool))) {
    return refused("refused_by_host", `The tool ${name} has changed.`);
  }
  const began = clock.monotonic();
  const ended = (
    status: "succeeded" | "failed" | "unknown",
    output: CallOutcome["output"],
    text: string,
  ): CallWithText => ({
    ended: { status, output, dispatched: true, durationMs: clock.monotonic() - began },
    text,
  });
  const invocation = await invoke(tool, actor, input, { signal, callId: id }, run.log);
  if (invocation.status === "aborted") {
    return ended("unknown", "The call was cancelled while the tool was running.", "");
  }
  const { status, answer } = invocation;
  run.answered(answer);
  const text = textOf(answer);
  // Structured content is kept as JSON.
  const structured = status === "succeeded" ? answer.structuredContent : undefined;
  return ended(status, (structured as CallOutcome["output"] | undefined) ?? text, text);
}

function refused(code: NonNullable<CallOutcome["code"]>, text: string): CallWithText {
  return { ended: { status: "denied", code, output: text, dispatched: false, durationMs: 0 }, text };
}
