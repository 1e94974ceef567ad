import type {
  LanguageModelV4CallOptions,
  LanguageModelV4StreamPart,
  LanguageModelV4StreamResult,
} from "@ai-sdk/provider";
import type { Clock } from "../base/clock.ts";
import { SilenceTimer } from "./silence.ts";

type ModelFactory<Result> = (options: LanguageModelV4CallOptions) => PromiseLike<Result>;

/**
 * Requests a whole answer. Fails with a TimeoutError if it has not arrived after `timeoutMs`, or with the reason of
 * the caller's signal as soon as that aborts.
 */
export async function wholeWithDeadline<Result>(
  generate: ModelFactory<Result>,
  options: LanguageModelV4CallOptions,
  timeoutMs: number,
  clock: Clock,
): Promise<Result> {
  const silence = new SilenceTimer(timeoutMs, clock);
  try {
    return await firstResult(generate, options, silence, silence.begin());
  } finally {
    silence.end();
  }
}

/**
 * Streams from `open`, and fails with a TimeoutError if neither the beginning nor the next part of the answer arrives
 * within `timeoutMs`. On timeout, the upstream request is aborted. Time in which nobody reads does not count. An
 * abort by the caller ends the wait for the beginning at once.
 */
export async function withDeadline(
  open: ModelFactory<LanguageModelV4StreamResult>,
  options: LanguageModelV4CallOptions,
  timeoutMs: number,
  clock: Clock,
): Promise<LanguageModelV4StreamResult> {
  const silence = new SilenceTimer(timeoutMs, clock);
  const timedOut = silence.begin();
  const result = await firstResult(open, options, silence, timedOut);
  return { ...result, stream: untilSilence(result.stream, silence, timedOut) };
}

async function firstResult<Result>(
  call: ModelFactory<Result>,
  options: LanguageModelV4CallOptions,
  silence: SilenceTimer,
  timedOut: Promise<never>,
): Promise<Result> {
  const { abortSignal: caller } = options;
  const signal = caller ? AbortSignal.any([caller, silence.signal]) : silence.signal;
  // Packages check the signal only when they send, and Vertex AI's first waits for an access token.
  const stopped = Promise.withResolvers<never>();
  const stop = () => stopped.reject(caller?.reason);
  caller?.addEventListener("abort", stop, { once: true });
  try {
    caller?.throwIfAborted();
    const opening = Promise.resolve(call({ ...options, abortSignal: signal }));
    // If the provider loses the race, its late rejection must not count as unhandled.
    opening.catch(() => {});
    return await Promise.race([opening, timedOut, stopped.promise]);
  } catch (error) {
    silence.end();
    throw silence.reason(error);
  } finally {
    caller?.removeEventListener("abort", stop);
  }
}

/** Not an async function: functions created in one would keep the request's options while the answer is streamed. */
function untilSilence(
  parts: ReadableStream<LanguageModelV4StreamPart>,
  silence: SilenceTimer,
  timedOut: Promise<never>,
): ReadableStream<LanguageModelV4StreamPart> {
  const reader = parts.getReader();
  // Ends a pending read even if the provider ignores its signal.
  timedOut.catch((reason) => reader.cancel(reason).catch(() => {}));
  silence.pause();
  return new ReadableStream<LanguageModelV4StreamPart>(
    {
      async pull(controller) {
        silence.resume();
        try {
          const part = await reader.read();
          if (silence.signal.aborted) throw silence.signal.reason;
          silence.pause();
          if (!part.done) {
            controller.enqueue(part.value);
            return;
          }
          silence.end();
          controller.close();
        } catch (error) {
          silence.end();
          throw silence.reason(error);
        }
      },
      async cancel(reason) {
        silence.end();
        await reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
}
