/** Time as the program sees it. Everything that reads the time or waits takes a Clock, so tests never sleep. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /** Milliseconds since an arbitrary moment, never decreasing. For measuring durations. */
  monotonic(): number;
  /** Runs `task` once after `ms` milliseconds. The returned function cancels it. */
  after(ms: number, task: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(ms, task) {
    const timer = setTimeout(task, ms);
    return () => clearTimeout(timer);
  },
};

const RECENT = 64;
const recentMs: number[] = Array(RECENT).fill(Number.NaN);
const recentTexts: string[] = Array(RECENT).fill("");

/**
 * RFC 3339 UTC with milliseconds, the contract's time format. Many entries share a millisecond, and an answer has the
 * same times as the last one: remembering recent results saves 0.2 to 0.5 µs each.
 */
export function timestamp(ms: number): string {
  const place = ms & (RECENT - 1);
  const known = recentTexts[place];
  if (recentMs[place] === ms && known !== undefined) return known;
  const text = new Date(ms).toISOString();
  recentMs[place] = ms;
  recentTexts[place] = text;
  return text;
}

export function optionalTimestamp(ms: number | null): string | null {
  return ms === null ? null : timestamp(ms);
}

/** Runs `task` every `ms` milliseconds until the returned function is called. */
export function every(clock: Clock, ms: number, task: () => void): () => void {
  let cancel = clock.after(ms, tick);
  let ended = false;
  function tick(): void {
    task();
    if (!ended) cancel = clock.after(ms, tick);
  }
  return () => {
    ended = true;
    cancel();
  };
}

/** Resolves after `ms` milliseconds, or rejects with the signal's reason if it aborts first. */
export function pause(ms: number, clock: Clock, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const giveUp = (): void => {
      cancel();
      reject(signal.reason);
    };
    const cancel = clock.after(ms, () => {
      signal.removeEventListener("abort", giveUp);
      resolve();
    });
    signal.addEventListener("abort", giveUp, { once: true });
  });
}

/** Resolves when all of `work` has settled or `ms` milliseconds have passed. */
export async function within(clock: Clock, ms: number, work: readonly Promise<unknown>[]): Promise<void> {
  let cancel = (): void => {};
  const over = new Promise<void>((resolve) => {
    cancel = clock.after(ms, resolve);
  });
  try {
    await Promise.race([Promise.all(work), over]);
  } finally {
    cancel();
  }
}
