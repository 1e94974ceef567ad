/** Threads that search share each segment's memory, and stay within their limit together. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { SegmentSharing } from "../../src/vault/segment-sharing.ts";

const BYTES = 10;
/** As many segments of the test as the threads may cache. */
const ROOM = 4;

/** What a worker does with its cache. */
class Thread {
  readonly cache = new Map<number, SharedArrayBuffer>();
  readonly sharing: SegmentSharing<Thread>;

  constructor(sharing: SegmentSharing<Thread>) {
    this.sharing = sharing;
    sharing.join(this);
  }

  /** Uses these segments, and reads those that are missing. `changed`: whether the thread was told before. */
  use(ids: readonly number[], changed = true): void {
    if (changed) this.change();
    const read = ids.filter((id) => !this.cache.has(id)).map((id) => ({ id, buffer: bufferOf() }));
    for (const { id, buffer } of read) this.cache.set(id, buffer);
    this.sharing.report({ used: Float64Array.from(ids), read });
  }

  change(): void {
    const update = this.sharing.take(this);
    for (const id of update?.dropped ?? []) this.cache.delete(id);
    for (const { id, buffer } of update?.added ?? []) this.cache.set(id, buffer);
  }
}

function bufferOf(): SharedArrayBuffer {
  return new SharedArrayBuffer(BYTES);
}

/** As many segments as there is room for, which no test uses otherwise. */
const OTHERS = Array.from({ length: ROOM }, (_, n) => 100 + n);

function idsIn({ cache }: Thread): number[] {
  return [...cache.keys()].toSorted((a, b) => a - b);
}

function pair(): [SegmentSharing<Thread>, Thread, Thread] {
  const sharing = new SegmentSharing<Thread>(ROOM * BYTES);
  return [sharing, new Thread(sharing), new Thread(sharing)];
}

describe("two threads", () => {
  test("share what one of them reads", () => {
    const [, first, second] = pair();
    first.use([1, 2]);
    second.use([1, 2, 3]);
    first.change();
    expect(idsIn(first)).toEqual([1, 2, 3]);
    for (const [id, buffer] of first.cache) expect(second.cache.get(id)).toBe(buffer);
  });

  test("that read the same at the same time keep one copy of it", () => {
    const [, first, second] = pair();
    first.use([1], false);
    second.use([1], false);
    // The first one is told in two steps, the second one between them.
    second.change();
    first.change();
    expect(first.cache.get(1)).toBe(second.cache.get(1) as SharedArrayBuffer);
  });

  test("drop what neither used for longest", () => {
    const [, first, second] = pair();
    first.use([1, 2, 3, 4]);
    second.use([1]);
    first.use([5]);
    first.change();
    second.change();
    expect(idsIn(first)).toEqual([1, 3, 4, 5]);
    expect(idsIn(second)).toEqual([1, 3, 4, 5]);
  });

  test("stay within the limit and end up with the same copies, whatever they use and whenever they are told", () => {
    const step = fc.record({
      thread: fc.integer({ min: 0, max: 1 }),
      ids: fc.uniqueArray(fc.integer({ min: 1, max: 8 }), { minLength: 1, maxLength: 6 }),
      changed: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const [, ...threads] = pair();
        for (const { thread, ids, changed } of steps) (threads[thread] as Thread).use(ids, changed);
        for (const thread of threads) thread.change();
        const [first, second] = threads as [Thread, Thread];
        expect(first.cache.size).toBeLessThanOrEqual(ROOM);
        expect(idsIn(first)).toEqual(idsIn(second));
        for (const [id, buffer] of first.cache) expect(second.cache.get(id)).toBe(buffer);
        // Had any bytes been counted twice, or forgotten, fewer or more than these would be left.
        first.use(OTHERS);
        for (const thread of threads) thread.change();
        for (const thread of threads) expect(idsIn(thread)).toEqual(OTHERS);
      }),
    );
  });
});

test("a thread that starts later joins in, and nothing is left when all have ended", () => {
  const [sharing, first, second] = pair();
  first.use([1]);
  sharing.leave(second);
  const third = new Thread(sharing);
  third.use([1, 2]);
  first.change();
  third.change();
  expect(idsIn(first)).toEqual([1, 2]);
  for (const [id, buffer] of first.cache) expect(third.cache.get(id)).toBe(buffer);
  sharing.leave(first);
  sharing.leave(third);
  expect(sharing.take(third)).toBeNull();
  const fourth = new Thread(sharing);
  fourth.use(OTHERS);
  fourth.change();
  expect(idsIn(fourth)).toEqual(OTHERS);
});
