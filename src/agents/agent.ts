import { cancelled, RunFailure } from "./errors.ts";
import type { AgentEvent, AgentFailed, AgentFinished } from "./events.ts";
import type { Message, ToolCall, ToolResult, UserMessage } from "./message.ts";
import { exceedsBytes } from "./model/request-size.ts";
import type { AgentOptions } from "./options.ts";
import { outputInvalid } from "./output.ts";
import { RunState } from "./run.ts";
import { answer } from "./step.ts";
import { callTool } from "./tools/call.ts";

/**
 * Runs an agent until it has an answer, alternating between model and tools. Nothing happens before the first event
 * is requested. Failures are events: every run ends with exactly one `agent.finished` or `agent.failed`. Leaving
 * early (`break`, `return()`) stops the model and the tools, even while an event is awaited.
 * @throws TypeError for invalid options, but only before the first event
 */
export function runAgent(options: AgentOptions): AsyncGenerator<AgentEvent, void> {
  const controller = new AbortController();
  const events = follow(new RunState(options, controller.signal), controller);
  const leave = events.return.bind(events);
  // A waiting generator handles return() only at its next yield, and a silent model could delay that forever.
  return Object.assign(events, {
    return(value: void | PromiseLike<void>) {
      controller.abort(new DOMException("The reader of the events has left.", "AbortError"));
      return leave(value);
    },
  });
}

async function* follow(run: RunState, controller: AbortController): AsyncGenerator<AgentEvent, void> {
  const { signal } = run.options;
  const abort = (): void => controller.abort(signal?.reason);
  if (signal?.aborted) abort();
  signal?.addEventListener("abort", abort, { once: true });
  try {
    const output = yield* converse(run);
    yield { type: "agent.finished", ...output, usage: run.usage, steps: run.steps };
  } catch (error) {
    yield failed(run, error);
  } finally {
    signal?.removeEventListener("abort", abort);
  }
}

/** The final answer of a run. */
type FinalAnswer = Pick<AgentFinished, "output" | "json">;

/** The loop itself. Returns the final answer. */
async function* converse(run: RunState): AsyncGenerator<AgentEvent, FinalAnswer> {
  const { instructions, memory, prompt, progress, repair, maxSteps, maxConversationBytes } = run.options;
  const remembered = (await memory?.load()) ?? [];
  const turn: Message[] = [...prompt, ...progress.messages];
  run.reserveCallIds(remembered);
  run.reserveCallIds(turn);
  run.steps = progress.steps;
  if (progress.pending.length > 0) {
    turn.push({ role: "tool", results: yield* callTools(run, progress.pending, progress.results) });
  }
  const saved = turn.at(-1);
  if (saved?.role === "assistant") {
    const checked = checkOutput(run, saved.text);
    if ("output" in checked) {
      yield { type: "output.delta", text: checked.output };
      return checked;
    }
    turn.push(checked.request);
  }
  while (run.steps < maxSteps) {
    if (run.signal.aborted) throw cancelled(run.signal);
    const step = run.steps + 1;
    // A new list for each step, because receivers may keep the previous one.
    const messages = [...remembered, ...turn];
    if (exceedsBytes({ instructions, messages }, maxConversationBytes)) {
      throw new RunFailure("tool_loop_limit", `The conversation exceeds ${maxConversationBytes} bytes.`);
    }
    yield { type: "step.started", step };
    const { text, toolCalls, model, usage, finishReason } = yield* answer(run, step, messages);
    run.steps = step;
    turn.push({ role: "assistant", text, toolCalls });
    if (toolCalls.length > 0) {
      turn.push({ role: "tool", results: yield* callTools(run, toolCalls) });
      yield { type: "step.finished", step, model, usage, finishReason };
      continue;
    }
    const checked = checkOutput(run, text);
    if ("output" in checked) await memory?.append(turn);
    yield { type: "step.finished", step, model, usage, finishReason };
    if ("output" in checked) return checked;
    turn.push(checked.request);
    if (text !== "") yield { type: "output.reset" };
  }
  if (repair && turn.at(-1)?.role === "user") throw outputInvalid();
  throw new RunFailure("tool_loop_limit", `There was no answer after ${maxSteps} steps.`);
}

/** The final answer or, if it is not valid output, the request to correct it. */
function checkOutput(run: RunState, output: string): FinalAnswer | { readonly request: UserMessage } {
  const checked = run.options.repair?.check(output);
  if (!checked) return { output };
  return checked.isValid ? { output, json: checked.json } : { request: checked.request };
}

/**
 * Runs calls one after the other, in the order requested: later calls often rely on earlier ones, and their evidence
 * has a single order. Returns all results of the step, including earlier ones.
 */
async function* callTools(
  run: RunState,
  calls: readonly ToolCall[],
  before: readonly ToolResult[] = [],
): AsyncGenerator<AgentEvent, readonly ToolResult[]> {
  const results = [...before];
  for (const call of calls) {
    if (run.signal.aborted) throw cancelled(run.signal);
    limitStep(run, results);
    results.push(yield* callTool(run, call));
  }
  if (run.signal.aborted) throw cancelled(run.signal);
  limitStep(run, results);
  return results;
}

function limitStep({ options }: RunState, results: readonly ToolResult[]): void {
  const limit = options.maxStepBytes;
  if (!exceedsBytes({ instructions: undefined, messages: [{ role: "tool", results }] }, limit)) return;
  throw new RunFailure("tool_loop_limit", `The tool results of one step exceed ${limit} bytes.`);
}

function failed(run: RunState, error: unknown): AgentFailed {
  const { code, message, cause } = failureOf(run, error);
  const event: AgentFailed = { type: "agent.failed", code, message, usage: run.usage, steps: run.steps };
  return cause === undefined ? event : Object.defineProperty(event, "cause", { value: cause });
}

function failureOf(run: RunState, error: unknown): RunFailure {
  if (error instanceof RunFailure) return error;
  // The memory stopped because the run was cancelled.
  if (run.signal.aborted) return cancelled(run.signal);
  return new RunFailure("internal", "The run failed.", error);
}
