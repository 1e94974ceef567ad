import type {
  LanguageModelV4CallOptions,
  LanguageModelV4StreamPart,
  LanguageModelV4StreamResult,
} from "@ai-sdk/provider";
import type { Clock } from "../base/clock.ts";
import { SilenceTimer } from "./silence.ts";

type ModelFactory = (options: LanguageModelV4CallOptions) => PromiseLike<LanguageModelV4StreamResult>;

/**
 * Streams from `open`, and fails with a TimeoutError if nothing arrives for `timeoutMs`, whether the beginning of the
 * answer or its next part. On timeout, the upstream request is aborted. Time in which nobody reads does not count.
 */
export async function withDeadline(
  open: ModelFactory,
  options: LanguageModelV4CallOptions,
  timeoutMs: number,
  clock: Clock,
): Promise<LanguageModelV4StreamResult> {
  const silence = new SilenceTimer(timeoutMs, clock);
  const signal = options.abortSignal
    ? AbortSignal.any([options.abortSignal, silence.signal])
    : silence.signal;
  const timedOut = silence.begin();
  let result: LanguageModelV4StreamResult;
  try {
    const opening = Promise.resolve(open({ ...options, abortSignal: signal }));
    // If the timeout wins the race, the provider's own late rejection must not surface as unhandled.
    opening.catch(() => {});
    result = await Promise.race([opening, timedOut]);
  } catch (error) {
    silence.end();
    throw silence.reason(error);
  }
  const reader = result.stream.getReader();
  // Ends a pending read even if the provider ignores its signal.
  timedOut.catch((reason) => reader.cancel(reason).catch(() => {}));
  silence.pause();
  const stream = new ReadableStream<LanguageModelV4StreamPart>(
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
  return { ...result, stream };
}
