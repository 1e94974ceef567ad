import { CANCELLED, type Ending, endingOf, failedEnding, usageOf } from "./ending.ts";
import { AgentDenied, cancelled, RunFailure } from "./errors.ts";
import type { AgentEvent, FinishReason } from "./events.ts";
import type { ModelFailure } from "./failure.ts";
import type { ToolCall } from "./message.ts";
import { Received } from "./received.ts";
import { contentBytes, requestBytes } from "./request-size.ts";
import { isPromise, type Run } from "./run.ts";
import { type ModelRequest, Upstream } from "./upstream.ts";
import { NO_USAGE, type Usage } from "./usage.ts";

/** What came of asking one model once. */
export type ModelCall =
  | {
      readonly status: "succeeded";
      readonly text: string;
      readonly toolCalls: readonly ToolCall[];
      readonly usage: Usage;
      readonly finishReason: FinishReason;
    }
  | {
      readonly status: "failed";
      readonly failure: ModelFailure;
      readonly error: unknown;
      /** Text has been passed on that is worth nothing now. */
      readonly hasText: boolean;
    };

/**
 * Asks one model once, between its two hooks. Yields what it says while it says it; what goes wrong upstream is in the
 * value returned. @throws RunFailure when the run is cancelled, a hook fails or a cap is exceeded.
 */
export async function* callModel(
  run: Run,
  asked: Omit<ModelRequest, "sentBytes" | "contentBytes">,
): AsyncGenerator<AgentEvent, ModelCall> {
  const request = measured(run, asked);
  await before(run, request);
  const startedAt = run.settings.now();
  const received = new Received(run);
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
    // The reader of the events left at a yield: nobody is to be told if the hook fails, but it is still called.
    if (hasLeft) await report().catch(() => {});
  }
  const call = await report();
  if (exceeded) throw exceeded;
  return call;

  /** The after-hook and the charge; on each way out once. */
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

function measured(run: Run, asked: Omit<ModelRequest, "sentBytes" | "contentBytes">): ModelRequest {
  const { instructions } = run.settings;
  const content = () => ({ instructions, messages: asked.messages, tools: run.offeredTools() });
  let bytes: number | undefined;
  return {
    ...asked,
    sentBytes() {
      bytes ??= requestBytes(content());
      return bytes;
    },
    contentBytes: () => contentBytes(content()),
  };
}

async function before(run: Run, request: ModelRequest): Promise<void> {
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

interface Told {
  readonly usage: Usage;
  readonly text: string;
  readonly toolCalls: readonly ToolCall[];
  readonly durationMs: number;
}

async function after(run: Run, request: ModelRequest, ending: Ending, told: Told): Promise<void> {
  const { candidate, step, attempt, sentBytes } = request;
  const { status } = ending;
  const error = ending.status === "failed" ? { error: ending.error, reason: ending.failure.reason } : {};
  try {
    const info = { step, model: candidate.id, attempt, status, sentBytes, ...told, ...error };
    const done = run.settings.hooks.afterModelCall?.(info);
    if (isPromise(done)) await done;
  } catch (cause) {
    // What could not be recorded must not count as done: going on would act on an answer that nobody can prove.
    throw new RunFailure("internal", "The model call could not be recorded.", cause);
  }
}
