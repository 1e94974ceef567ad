import type { EmbeddingModelV4, EmbeddingModelV4CallOptions, EmbeddingModelV4Result } from "@ai-sdk/provider";
import type { Clock } from "../../base/clock.ts";
import type { RandomSource } from "../../base/ids.ts";

const FIRST_BACKOFF_MS = 500;

/**
 * Sends one request and waits up to `timeoutMs` for the complete response, then fails with a TimeoutError. Rejects
 * with the provider's error or the signal's reason, even if the provider ignores its signal.
 */
export async function askOnce(
  model: EmbeddingModelV4,
  { abortSignal: signal, ...options }: EmbeddingModelV4CallOptions,
  timeoutMs: number,
  clock: Clock,
): Promise<EmbeddingModelV4Result> {
  signal?.throwIfAborted();
  const deadline = new AbortController();
  const cancel = clock.after(timeoutMs, () =>
    deadline.abort(new DOMException(`no answer within ${timeoutMs} ms`, "TimeoutError")),
  );
  const either = signal ? AbortSignal.any([signal, deadline.signal]) : deadline.signal;
  const stopped = new Promise<never>((_, reject) => {
    either.addEventListener("abort", () => reject(either.reason), { once: true });
  });
  try {
    const asked = (async () => model.doEmbed({ ...options, abortSignal: either }))();
    // If the abort wins the race, the provider's own late rejection must not surface as unhandled.
    asked.catch(() => {});
    return await Promise.race([asked, stopped]);
  } catch (error) {
    throw either.aborted ? either.reason : error;
  } finally {
    cancel();
  }
}

/**
 * Milliseconds to wait after failure number `attempt` (from 1): 500, 1,000, 2,000, each reduced at random by up to
 * half.
 */
export function backoff(attempt: number, random: RandomSource): number {
  const chance = new Uint8Array(1);
  random(chance);
  return FIRST_BACKOFF_MS * 2 ** (attempt - 1) * (1 - (chance[0] ?? 0) / 512);
}
