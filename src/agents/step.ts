import { cancelled, RunFailure } from "./errors.ts";
import type { AgentEvent } from "./events.ts";
import type { Message } from "./message.ts";
import { callModel, type ModelCall } from "./model/call.ts";
import type { NamedModel } from "./model/model.ts";
import { retryAfter } from "./model/retry-after.ts";
import type { RunState } from "./run.ts";

/** The answer of a step and the model that gave it. */
export type StepAnswer = Extract<ModelCall, { status: "succeeded" }> & { readonly model: string };

interface FailedAttempt {
  readonly candidate: NamedModel;
  readonly reason: string;
  readonly error: unknown;
  readonly hasText: boolean;
}

/**
 * Gets an answer from the first model that gives one, starting with the first that the policy allows. Falling back is
 * always safe, because requested tools run only once the answer is complete. If the last model can be retried soon,
 * it is called once more, since no others are left.
 * @throws RunFailure if no model answers, or none is allowed
 */
export async function* answer(
  run: RunState,
  step: number,
  messages: readonly Message[],
): AsyncGenerator<AgentEvent, StepAnswer> {
  const { models, policy } = run.options;
  const isAllowed = ({ id }: NamedModel): boolean => policy.allowModel?.(id) ?? true;
  const failed: FailedAttempt[] = [];
  for (const candidate of models) {
    if (run.signal.aborted) throw cancelled(run.signal);
    if (!isAllowed(candidate)) continue;
    const previous = failed.at(-1);
    if (previous) {
      if (previous.hasText) yield { type: "output.reset" };
      yield {
        type: "model.fallback",
        from: previous.candidate.id,
        to: candidate.id,
        reason: previous.reason,
      };
      if (run.signal.aborted) throw cancelled(run.signal);
    }
    const call = yield* callModel(run, { candidate, step, attempt: failed.length + 1, messages });
    if (call.status === "succeeded") return { ...call, model: candidate.id };
    failed.push(failedAttempt(candidate, call));
    if (!call.failure.retryable) break;
  }
  const last = failed.at(-1);
  // The policy may change during the wait.
  if (last && (await waitForRetry(run, last)) && isAllowed(last.candidate)) {
    const { candidate } = last;
    const call = yield* callModel(run, { candidate, step, attempt: failed.length + 1, messages });
    if (call.status === "succeeded") return { ...call, model: candidate.id };
    failed.push(failedAttempt(candidate, call));
  }
  throw noAnswer(failed);
}

function failedAttempt(
  candidate: NamedModel,
  { failure, error, hasText }: Extract<ModelCall, { status: "failed" }>,
): FailedAttempt {
  return { candidate, reason: failure.reason, error, hasText };
}

/**
 * Waits for the pause requested by the provider, if it is short.
 * @returns false if it is too long, or if none was requested
 * @throws RunFailure if the run is cancelled in the meantime
 */
async function waitForRetry(run: RunState, { candidate, error }: FailedAttempt): Promise<boolean> {
  const ms = retryAfter(error);
  if (ms === undefined || ms > (candidate.patienceMs ?? Number.POSITIVE_INFINITY)) return false;
  try {
    await run.options.wait(ms, run.signal);
  } catch (cause) {
    if (run.signal.aborted) throw cancelled(run.signal);
    throw cause;
  }
  return true;
}

function noAnswer(failed: readonly FailedAttempt[]): RunFailure {
  if (failed.length === 0) return new RunFailure("denied", "The policy allows none of the models.");
  const code = failed.every(({ reason }) => reason === "timeout") ? "timeout" : "model_unavailable";
  const list = failed.map(({ candidate, reason }) => `${candidate.id} (${reason})`).join(", ");
  const errors = failed.map(({ error }) => error);
  const cause = errors.length === 1 ? errors[0] : new AggregateError(errors);
  return new RunFailure(code, `No model answered: ${list}.`, cause);
}
