import { cancelled, RunFailure } from "../errors.ts";
import type { AgentEvent, FinishReason } from "../events.ts";
import { callAfter, callBefore } from "../hooks.ts";
import type { ToolCall } from "../message.ts";
import type { RunState } from "../run.ts";
import type { ModelFailure } from "./failure.ts";
import { contentBytes, exceedsText, requestBytes } from "./request-size.ts";
import { ResponseCollector } from "./response.ts";
import { CANCELLED, endingOf, failedEnding, usageOf } from "./response-end.ts";
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
      /** Whether text was passed on that must now be discarded. */
      readonly hasText: boolean;
    };

/**
 * Calls one model once, between its two hooks. Yields the model's output as it arrives. Upstream failures are
 * returned.
 * @throws RunFailure if the run is cancelled, a hook fails or a limit is exceeded
 */
export async function* callModel(run: RunState, prompt: ModelPrompt): AsyncGenerator<AgentEvent, ModelCall> {
  const request = measured(run, prompt);
  const { candidate, step, attempt, messages, sentBytes } = request;
  const { hooks, now } = run.options;
  const { signal } = run;
  const info = { step, model: candidate.id, attempt, sentBytes };
  await callBefore("The model call", signal, () => hooks.beforeModelCall?.({ ...info, messages, signal }));
  const startedAt = now();
  const received = new ResponseCollector(run);
  const upstream = new Upstream(run);
  let ending = CANCELLED;
  let exceeded: RunFailure | undefined;
  let hasLeft = true;
  try {
    yield { type: "model.started", model: candidate.id };
    if (!signal.aborted) await upstream.open(request);
    while (!signal.aborted && ending === CANCELLED) {
      const part = await upstream.next();
      if (signal.aborted) break;
      const text = part && received.add(part);
      if (text !== undefined) yield { type: "output.delta", text };
      ending = endingOf(part) ?? CANCELLED;
    }
    hasLeft = false;
  } catch (error) {
    hasLeft = false;
    if (error instanceof RunFailure) exceeded = error;
    if (exceeded || !signal.aborted) ending = { ...failedEnding(error), isBroken: true };
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
    const error = ending.status === "failed" ? { error: ending.error, reason: ending.failure.reason } : {};
    const result = { status: ending.status, usage, text, toolCalls, durationMs: now() - startedAt, ...error };
    await callAfter("The model call", () => hooks.afterModelCall?.({ ...info, ...result }));
    switch (ending.status) {
      case "succeeded":
        return { status: "succeeded", text, toolCalls, usage, finishReason: ending.finishReason };
      case "failed":
        return { status: "failed", failure: ending.failure, error: ending.error, hasText: received.hasText };
      case "cancelled":
        throw cancelled(signal);
    }
  }
}

function measured(run: RunState, prompt: ModelPrompt): ModelRequest {
  const { instructions, toolbox, outputSchema } = run.options;
  const { messages } = prompt;
  const content = () => {
    const tools = toolbox.offered();
    return { instructions, messages, tools, ...(tools.length === 0 ? { outputSchema } : {}) };
  };
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
