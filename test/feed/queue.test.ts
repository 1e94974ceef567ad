import { expect, test } from "bun:test";
import fc from "fast-check";
import { ConflatingQueue, type QueueBatch } from "../../src/feed/queue.ts";

const LIMIT = 5;

type Step =
  | { readonly kind: "put"; readonly key: string; readonly text: string }
  | { readonly kind: "take"; readonly units: number }
  | { readonly kind: "reset" };

const key = fc.constantFrom(..."abcdefgh");
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("put"), key, text: fc.string({ maxLength: 3 }) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("take"), units: fc.nat(30) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("reset") }) },
);

/** A client's view: lists that it reads when told to, with each received text laid over them. */
class Picture {
  readonly #store: ReadonlyMap<string, string>;
  #lists = new Map<string, string>();

  constructor(store: ReadonlyMap<string, string>) {
    this.#store = store;
  }

  lay({ mark, texts }: QueueBatch): void {
    if (mark !== null) this.#lists = new Map(this.#store);
    for (const text of texts) this.#lists.set(text[0] ?? "", text);
  }

  get sorted(): readonly (readonly [string, string])[] {
    return [...this.#lists].sort();
  }
}

test("a queued key is replaced in its place, and others are not touched", () => {
  const queue = new ConflatingQueue();
  queue.put("a", "a1");
  queue.put("b", "b1");
  queue.put("a", "a2");
  expect(queue.take(100)).toEqual({ mark: "feed.open", texts: ["a2", "b1"] });
  expect(queue.isEmpty).toBe(true);
});

test("reads are bounded but return at least one text, and the rest can still be replaced", () => {
  const queue = new ConflatingQueue();
  for (const name of ["a", "b", "c"]) queue.put(name, name.repeat(10));
  expect(queue.take(1).texts).toEqual(["a".repeat(10)]);
  queue.put("c", "new");
  expect(queue.take(13).texts).toEqual(["b".repeat(10), "new"]);
});

test("one key too many empties it, and the reader is told once to read everything again", () => {
  const queue = new ConflatingQueue(2);
  queue.take(0);
  queue.put("a", "a1");
  queue.put("b", "b1");
  queue.put("b", "b2");
  expect(queue.size).toBe(2);
  queue.put("c", "c1");
  expect([queue.size, queue.isEmpty]).toEqual([0, false]);
  queue.put("d", "d1");
  expect(queue.take(100)).toEqual({ mark: "feed.reset", texts: ["d1"] });
  expect(queue.take(100)).toEqual({ mark: null, texts: [] });
});

test("after any steps the picture has the last text of every key, and the queue respects its limit", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const queue = new ConflatingQueue(LIMIT);
      const store = new Map<string, string>();
      const picture = new Picture(store);
      for (const each of steps) {
        if (each.kind === "put") {
          const text = `${each.key}${each.text}`;
          store.set(each.key, text);
          queue.put(each.key, text);
        } else if (each.kind === "take") picture.lay(queue.take(each.units));
        else queue.reset();
        expect(queue.size).toBeLessThanOrEqual(LIMIT);
      }
      while (!queue.isEmpty) picture.lay(queue.take(4));
      expect(picture.sorted).toEqual([...store].sort());
    }),
    { numRuns: 500 },
  );
});
