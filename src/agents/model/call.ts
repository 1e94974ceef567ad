import { AgentDenied, cancelled, RunFailure } from "../errors.ts";
import type { AgentEvent, FinishReason } from "../events.ts";
import type { ToolCall } from "../message.ts";
import { isPromise, type RunState } from "../run.ts";
import type { ModelFailure } from "./failure.ts";
import { contentBytes, exceedsText, requestBytes } from "./request-size.ts";
import { ResponseCollector } from "./response.ts";
import { CANCELLED, endingOf, failedEnding, type ResponseEnd, usageOf } from "./response-end.ts";
import { type ModelRequest, Upstream } from "./upstream.ts";
import { NO_USAGE, type TokenUsage } from "./usage.ts";

/** A request before it is measured. */
type ModelPrompt = Omit<ModelRequest, "sentBytes" | "contentBytes" | "exceedsText">;

/** The result of calling one model once. */
export type ModelCall =
  | {
      readonly status: "succeeded";
      readonly text: string;
      readonly toolCalls: readonly ToolCall[];
      readonly usage: TokenUsage;
      readonly finishReason: FinishReason;
    }
  | {
      readonly status: "failed";
      readonly failure: ModelFailure;
      readonly error: unknown;
      /** Text was passed on that must be discarded. */
      readonly hasText: boolean;
    };

/**
 * Calls one model once, between its two hooks. Yields the model's output as it arrives. Upstream failures are
 * returned.
 * @throws RunFailure if the run is cancelled, a hook fails or a limit is exceeded
 */
export async function* callModel(run: RunState, prompt: ModelPrompt): AsyncGenerator<AgentEvent, ModelCall> {
  const request = measured(run, prompt);
  await before(run, request);
  const startedAt = run.settings.now();
  const received = new ResponseCollector(run);
  const upstream = new Upstream(run);
  let ending = CANCELLED;
  let exceeded: RunFailure | undefined;
  let hasLeft = true;
  try {
    yield { type: "model.started", model: request.candidate.id };
    if (!run.signal.aborted) await upstream.open(request);
    while (!run.signal.aborted && ending === CANCELLED) {
      const part = await upstream.next();
      if (run.signal.aborted) break;
      const text = part && received.add(part);
      if (text !== undefined) yield { type: "output.delta", text };
      ending = endingOf(part) ?? CANCELLED;
    }
    hasLeft = false;
  } catch (error) {
    hasLeft = false;
    if (error instanceof RunFailure) exceeded = error;
    if (exceeded || !run.signal.aborted) ending = { ...failedEnding(error), isBroken: true };
  } finally {
    upstream.close(ending.status === "succeeded");
    // The reader left at a yield, so a failing hook can no longer be reported, but it is still called.
    if (hasLeft) await report().catch(() => {});
  }
  const call = await report();
  if (exceeded) throw exceeded;
  return call;

  /** Calls the after-hook and counts the usage: exactly once, however the call ends. */
  async function report(): Promise<ModelCall> {
    const usage =
      ending === CANCELLED && !upstream.wasAsked
        ? NO_USAGE
        : usageOf({ ...request, ending, received, wasOpened: upstream.wasOpened });
    run.charge(usage);
    const { text } = received;
    const toolCalls = ending.status === "succeeded" ? received.toolCalls() : [];
    await after(run, request, ending, { usage, text, toolCalls, durationMs: run.settings.now() - startedAt });
    switch (ending.status) {
      case "succeeded":
        return { status: "succeeded", text, toolCalls, usage, finishReason: ending.finishReason };
      case "failed":
        return { status: "failed", failure: ending.failure, error: ending.error, hasText: received.hasText };
      case "cancelled":
        throw cancelled(run.signal);
    }
  }
}

function measured(run: RunState, prompt: ModelPrompt): ModelRequest {
  const { instructions } = run.settings;
  const { messages } = prompt;
  const content = () => ({ instructions, messages, tools: run.offeredTools() });
  let bytes: number | undefined;
  return {
    ...prompt,
    sentBytes() {
      bytes ??= requestBytes(content());
      return bytes;
    },
    contentBytes: () => contentBytes(content()),
    exceedsText: (limit) => exceedsText({ instructions, messages }, limit),
  };
}

async function before(run: RunState, request: ModelRequest): Promise<void> {
  const { candidate, step, attempt, messages, sentBytes } = request;
  try {
    const info = { step, model: candidate.id, attempt, messages, sentBytes, signal: run.signal };
    const done = run.settings.hooks.beforeModelCall?.(info);
    if (isPromise(done)) await done;
  } catch (cause) {
    if (cause instanceof AgentDenied) throw new RunFailure("denied", cause.message, cause);
    if (run.signal.aborted) throw cancelled(run.signal);
    throw new RunFailure("internal", "The model call could not be prepared.", cause);
  }
}

interface ModelCallReport {
  readonly usage: TokenUsage;
  readonly text: string;
  readonly toolCalls: readonly ToolCall[];
  readonly durationMs: number;
}

async function after(
  run: RunState,
  request: ModelRequest,
  ending: ResponseEnd,
  told: ModelCallReport,
): Promise<void> {
  const { candidate, step, attempt, sentBytes } = request;
  const { status } = ending;
  const error = ending.status === "failed" ? { error: ending.error, reason: ending.failure.reason } : {};
  try {
    const info = { step, model: candidate.id, attempt, status, sentBytes, ...told, ...error };
    const done = run.settings.hooks.afterModelCall?.(info);
    if (isPromise(done)) await done;
  } catch (cause) {
    // A call that could not be recorded must not count: the run would otherwise act on an answer without evidence.
    throw new RunFailure("internal", "The model call could not be recorded.", cause);
  }
}
