import type {
  LanguageModelV4CallOptions,
  LanguageModelV4StreamPart,
  LanguageModelV4StreamResult,
} from "@ai-sdk/provider";
import type { Clock } from "../base/clock.ts";

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

/**
 * One timer for a whole stream: each part only records its time of arrival, since arming a timer for each costs more.
 */
class SilenceTimer {
  readonly #controller = new AbortController();
  readonly #timeoutMs: number;
  readonly #clock: Clock;
  #since = 0;
  #paused = false;
  #cancel = () => {};

  constructor(timeoutMs: number, clock: Clock) {
    this.#timeoutMs = timeoutMs;
    this.#clock = clock;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Starts counting. The promise only ever rejects, with the TimeoutError. */
  begin(): Promise<never> {
    this.resume();
    this.#arm(this.#timeoutMs);
    return new Promise<never>((_, reject) => {
      this.signal.addEventListener("abort", () => reject(this.signal.reason), { once: true });
    });
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    this.#since = this.#clock.monotonic();
  }

  end(): void {
    this.#cancel();
  }

  /**
   * A provider responds to an abort with an error of its own. If the cause was silence, the TimeoutError replaces it.
   */
  reason(error: unknown): unknown {
    return this.signal.aborted ? this.signal.reason : error;
  }

  #arm(ms: number): void {
    this.#cancel = this.#clock.after(ms, () => {
      const left = this.#paused ? this.#timeoutMs : this.#since + this.#timeoutMs - this.#clock.monotonic();
      if (left > 0) this.#arm(left);
      else
        this.#controller.abort(new DOMException(`nothing arrived for ${this.#timeoutMs} ms`, "TimeoutError"));
    });
  }
}
