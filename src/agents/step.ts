import { cancelled, RunFailure } from "./errors.ts";
import type { AgentEvent } from "./events.ts";
import type { Message } from "./message.ts";
import { callModel, type ModelCall } from "./model-call.ts";
import type { Run } from "./run.ts";

/** The answer of a step, and who gave it. */
export type Answer = Extract<ModelCall, { status: "succeeded" }> & { readonly model: string };

interface FailedAttempt {
  readonly model: string;
  readonly reason: string;
  readonly error: unknown;
  readonly hasText: boolean;
}

/**
 * One answer from the first model that gives one, always beginning with the first that the policy allows. Falling back
 * is safe at any moment: what a model asks of tools is done only when its answer is complete.
 * @throws RunFailure when no model answers, or none may be asked.
 */
export async function* answer(
  run: Run,
  step: number,
  messages: readonly Message[],
): AsyncGenerator<AgentEvent, Answer> {
  const failed: FailedAttempt[] = [];
  for (const candidate of run.settings.models) {
    if (run.signal.aborted) throw cancelled(run.signal);
    if (!(run.settings.policy.allowModel?.(candidate.id) ?? true)) continue;
    const previous = failed.at(-1);
    if (previous) {
      if (previous.hasText) yield { type: "output.reset" };
      yield { type: "model.fallback", from: previous.model, to: candidate.id, reason: previous.reason };
      if (run.signal.aborted) throw cancelled(run.signal);
    }
    const call = yield* callModel(run, { candidate, step, attempt: failed.length + 1, messages });
    if (call.status === "succeeded") return { ...call, model: candidate.id };
    const { failure, error, hasText } = call;
    failed.push({ model: candidate.id, reason: failure.reason, error, hasText });
    if (!failure.retryable) break;
  }
  throw noAnswer(failed);
}

function noAnswer(failed: readonly FailedAttempt[]): RunFailure {
  if (failed.length === 0) return new RunFailure("denied", "The policy allows none of the models.");
  const code = failed.every(({ reason }) => reason === "timeout") ? "timeout" : "model_unavailable";
  const list = failed.map(({ model, reason }) => `${model} (${reason})`).join(", ");
  const errors = failed.map(({ error }) => error);
  const cause = errors.length === 1 ? errors[0] : new AggregateError(errors);
  return new RunFailure(code, `No model answered: ${list}.`, cause);
}
