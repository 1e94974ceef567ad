import { describe, expect, test } from "bun:test";
import type {
  LanguageModelV4CallOptions,
  LanguageModelV4StreamPart,
  LanguageModelV4StreamResult,
} from "@ai-sdk/provider";
import { wholeWithDeadline, withDeadline } from "../../src/models/deadline.ts";
import { FakeClock } from "../support/clock.ts";

const OPTIONS: LanguageModelV4CallOptions = { prompt: [] };
const delta = (text: string): LanguageModelV4StreamPart => ({ type: "text-delta", id: "0", delta: text });

/** A provider that sends when the test tells it to, and that can ignore its abort signal. */
function provider() {
  let controller: ReadableStreamDefaultController<LanguageModelV4StreamPart> | undefined;
  let signal: AbortSignal | undefined;
  let cancelled = false;
  const stream = new ReadableStream<LanguageModelV4StreamPart>({
    start(given) {
      controller = given;
    },
    cancel() {
      cancelled = true;
    },
  });
  return {
    open: async (options: LanguageModelV4CallOptions): Promise<LanguageModelV4StreamResult> => {
      signal = options.abortSignal;
      return { stream };
    },
    send: (text: string) => controller?.enqueue(delta(text)),
    end: () => controller?.close(),
    fail: (error: unknown) => controller?.error(error),
    aborted: () => signal?.aborted,
    cancelled: () => cancelled,
  };
}

/** A stream starts a read in a later turn of the event loop. */
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
const nameOf = (error: unknown) => (error instanceof Error ? error.name : String(error));

describe("a provider is abandoned with a TimeoutError", () => {
  test("if its answer does not begin in time, even if it ignores the signal", async () => {
    const clock = new FakeClock();
    let signal: AbortSignal | undefined;
    const opening = withDeadline(
      (options) => {
        signal = options.abortSignal;
        return new Promise(() => {});
      },
      OPTIONS,
      1_000,
      clock,
    );
    clock.advance(999);
    expect(signal?.aborted).toBe(false);
    clock.advance(1);
    expect(await opening.catch(nameOf)).toBe("TimeoutError");
    expect(signal?.aborted).toBe(true);
  });

  test("if its next part does not arrive in time, counted from the last one", async () => {
    const clock = new FakeClock();
    const source = provider();
    const { stream } = await withDeadline(source.open, OPTIONS, 1_000, clock);
    const reader = stream.getReader();
    for (const text of ["a", "b"]) {
      const reading = reader.read();
      await turn();
      clock.advance(900);
      source.send(text);
      expect((await reading).value).toEqual(delta(text));
    }
    const reading = reader.read().catch(nameOf);
    await turn();
    clock.advance(2_000);
    expect(await reading).toBe("TimeoutError");
    expect([source.aborted(), source.cancelled()]).toEqual([true, true]);
  });
});

test("time during which nobody reads does not count", async () => {
  const clock = new FakeClock();
  const source = provider();
  const reader = (await withDeadline(source.open, OPTIONS, 1_000, clock)).stream.getReader();
  source.send("a");
  await reader.read();
  clock.advance(100_000);
  source.send("b");
  expect((await reader.read()).value).toEqual(delta("b"));
  expect(source.aborted()).toBe(false);
});

test("a provider's own error is unchanged, and the caller's abort reaches the provider", async () => {
  const clock = new FakeClock();
  const source = provider();
  const control = new AbortController();
  const options = { ...OPTIONS, abortSignal: control.signal };
  const reader = (await withDeadline(source.open, options, 1_000, clock)).stream.getReader();
  source.fail(new RangeError("upstream"));
  expect(await reader.read().catch(nameOf)).toBe("RangeError");
  control.abort();
  expect(source.aborted()).toBe(true);
});

test("no timer remains after the end: neither an ended stream nor a cancelled one is aborted later", async () => {
  const clock = new FakeClock();
  const whole = provider();
  const reader = (await withDeadline(whole.open, OPTIONS, 1_000, clock)).stream.getReader();
  whole.end();
  expect((await reader.read()).done).toBe(true);
  const left = provider();
  await (await withDeadline(left.open, OPTIONS, 1_000, clock)).stream.cancel();
  clock.advance(100_000);
  expect([whole.aborted(), left.aborted(), left.cancelled()]).toEqual([false, false, true]);
});

describe("a caller that aborts is answered at once, even if the provider ignores the signal", () => {
  test.each([
    ["a whole answer", wholeWithDeadline],
    ["a stream", withDeadline],
  ] as const)("while it waits for %s", async (_, wait) => {
    const stop = new AbortController();
    const reason = new Error("stopped");
    let signal: AbortSignal | undefined;
    const open = (options: LanguageModelV4CallOptions) => {
      signal = options.abortSignal;
      return new Promise<never>(() => {});
    };
    const waiting = wait(open, { ...OPTIONS, abortSignal: stop.signal }, 1_000, new FakeClock());
    const failed = waiting.catch((error: unknown) => error);
    stop.abort(reason);
    expect(await failed).toBe(reason);
    expect(signal?.aborted).toBe(true);

    signal = undefined;
    const late = wait(open, { ...OPTIONS, abortSignal: stop.signal }, 1_000, new FakeClock());
    expect(await late.catch((error: unknown) => error)).toBe(reason);
    expect(signal).toBeUndefined();
  });
});
