/** A task's entries are found through the index of its agent and of two actions. The entries' own bytes decide. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { EntryFilter, NamedTask } from "../../src/ledger/reading/query.ts";
import { draft, type LedgerBench, openLedger } from "./support.ts";

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: 7 });

/** 72 blocks of the index, more than one step of a search reads, and 68 entries that are not in any block yet. */
const ENTRIES = 18_500;
const BLOCK = 256;
const TASKS = 30;

interface Entry {
  readonly seq: number;
  readonly agent?: string;
  readonly action: string;
  readonly task?: string;
}

const idOf = (n: number) => `task_${n}`;
let bench: LedgerBench;
let all: Entry[];
let tasks: NamedTask[];

beforeAll(async () => {
  bench = await openLedger();
  const dispatched = new Set<number>();
  for (let at = 0; at < ENTRIES; at += 500) {
    const jobs = Array.from({ length: 500 }, (_, index) => {
      const n = at + index;
      // Each task begins at some point and is mentioned until the end.
      const k = (n * 7) % TASKS;
      const isThere = n >= k * 500;
      const task = isThere && n % 4 !== 0 ? idOf(k) : undefined;
      if (task !== undefined && !dispatched.has(k)) {
        dispatched.add(k);
        return bench.ledger.record(1, draft({ action: "task.dispatch", agent: `a${k % 3}`, task }));
      }
      if (task !== undefined && n % 41 === 0) {
        return bench.ledger.record(1, draft({ action: n % 2 ? "payload.erase" : "task.cancel", task }));
      }
      const action = n % 5 === 0 ? "payload.erase" : "model.call";
      return bench.ledger.record(1, draft({ action, agent: `a${task === undefined ? n % 3 : k % 3}`, task }));
    });
    await Promise.all(jobs);
  }
  await bench.ledger.record(2, draft({ agent: "a0", task: idOf(0) }));
  all = bench.rows().map((row) => JSON.parse(row.bytes));
  tasks = Array.from({ length: TASKS }, (_, k) => ({
    id: idOf(k),
    agent: `a${k % 3}`,
    dispatchSeq: all.find((entry) => entry.action === "task.dispatch" && entry.task === idOf(k))?.seq ?? 0,
  }));
});
afterAll(() => bench.close());

const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined, freq: 1 });
const wanted = fc.record({
  task: fc.nat({ max: TASKS - 1 }),
  agent: maybe(fc.constantFrom("a0", "a1", "nobody")),
  action: maybe(fc.constantFrom("payload.erase", "model.call", "task.dispatch", "no.such")),
});
type Wanted = typeof wanted extends fc.Arbitrary<infer T> ? T : never;
const order = fc.constantFrom("asc" as const, "desc" as const);

function filterOf({ task, agent, action }: Wanted): EntryFilter {
  return { task: tasks[task] ?? null, agent, action };
}

/** What a scan of every entry finds. */
function expected({ task, agent, action }: Wanted, by: "asc" | "desc"): number[] {
  const found = all
    .filter((entry) => entry.task === idOf(task))
    .filter((entry) => agent === undefined || entry.agent === agent)
    .filter((entry) => action === undefined || entry.action === action)
    .map(({ seq }) => seq);
  return by === "asc" ? found : found.toReversed();
}

test("the entries name the tasks in all the ways being searched for", () => {
  expect(all).toHaveLength(ENTRIES);
  expect(tasks.every(({ dispatchSeq }) => dispatchSeq > 0)).toBe(true);
  for (const action of ["payload.erase", "task.cancel"]) {
    const bare = all.filter((entry) => entry.action === action && entry.task && entry.agent === undefined);
    expect(bare.length).toBeGreaterThan(50);
  }
});

describe("the entries of a task", () => {
  test("that does not exist are not found, whatever the other filters", async () => {
    const none = { entries: [], next: null };
    expect(await bench.lists.find(1, { task: null }, { order: "asc", limit: 10 })).toEqual(none);
    expect(await bench.lists.find(1, { task: null, agent: "a0" }, { order: "desc", limit: 10 })).toEqual(
      none,
    );
  });

  test("are found page by page, each once, however little a page may search", async () => {
    await fc.assert(
      fc.asyncProperty(wanted, order, fc.constantFrom(1, 2, 64), async (wanted, order, looks) => {
        const seqs: number[] = [];
        for (let after: number | undefined; ; ) {
          const page = { order, limit: 50, after, looks };
          const found = await bench.lists.find(1, filterOf(wanted), page);
          expect(found.entries.length).toBeLessThanOrEqual(50);
          seqs.push(...found.entries.map(({ seq }) => seq));
          if (found.next === null) break;
          // Otherwise the search would never end.
          if (after !== undefined)
            expect(order === "asc" ? found.next > after : found.next < after).toBe(true);
          after = found.next;
        }
        expect(seqs).toEqual(expected(wanted, order));
      }),
      { numRuns: 60 },
    );
  });

  test("are read completely, in any range", async () => {
    const seq = fc.integer({ min: 1, max: ENTRIES });
    await fc.assert(
      fc.asyncProperty(wanted, order, fc.tuple(seq, seq), async (wanted, order, ends) => {
        const [first, last] = [Math.min(...ends), Math.max(...ends)];
        const seqs: number[] = [];
        for await (const entries of bench.lists.read(1, filterOf(wanted), { first, last, order })) {
          expect(entries.length).toBeLessThanOrEqual(BLOCK);
          seqs.push(...entries.map(({ seq }) => seq));
        }
        expect(seqs).toEqual(expected(wanted, order).filter((each) => each >= first && each <= last));
      }),
      { numRuns: 40 },
    );
  });

  test("are not searched for before its dispatch", async () => {
    const late = tasks.at(-1) as NamedTask;
    const { entries } = await bench.lists.find(1, { task: late }, { order: "asc", limit: 1, looks: 1 });
    expect(entries.map(({ seq }) => seq)).toEqual([late.dispatchSeq]);
  });

  test("are those of the requested workspace", async () => {
    const page = { order: "asc", limit: 200 } as const;
    const task = { id: idOf(0), agent: "a0", dispatchSeq: 1 };
    const seqsIn = async (workspace: number) =>
      (await bench.lists.find(workspace, { task }, page)).entries.map(({ seq }) => seq);
    expect(await seqsIn(2)).toEqual([1]);
    expect(await seqsIn(1)).toEqual(
      expected({ task: 0, agent: undefined, action: undefined }, "asc").slice(0, 200),
    );
  });
});
