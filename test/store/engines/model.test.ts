/**
 * However an engine groups the transactions of a workspace, and whichever of them fail, the result is as if they had run
 * one after another.
 */
import { afterAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Db } from "../../../src/store/db.ts";
import { engines } from "./engines.ts";

type Step =
  | { readonly put: number; readonly value: string; readonly isAwaited: boolean }
  | { readonly remove: number; readonly isAwaited: boolean }
  | { readonly read: true };

interface Job {
  readonly steps: readonly Step[];
  readonly throws: boolean;
  /** Jobs from the same turn of the event loop belong to the same burst. */
  readonly startsBurst: boolean;
}

type State = ReadonlyMap<number, string>;

const key = fc.integer({ min: 0, max: 5 });
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ put: key, value: fc.string({ unit: "binary", maxLength: 4 }), isAwaited: fc.boolean() }),
  fc.record({ remove: key, isAwaited: fc.boolean() }),
  fc.record({ read: fc.constant(true as const) }),
);
const job: fc.Arbitrary<Job> = fc.record({
  steps: fc.array(step, { maxLength: 5 }),
  throws: fc.boolean(),
  startsBurst: fc.boolean(),
});

/** The state after a job, or null if the job fails: inserting an existing key violates the primary key. */
function expected(state: State, { steps, throws }: Job): State | null {
  const next = new Map(state);
  for (const each of steps) {
    if ("read" in each) continue;
    if ("remove" in each) next.delete(each.remove);
    else if (next.has(each.put)) return null;
    else next.set(each.put, each.value);
  }
  return throws ? null : next;
}

const sorted = (state: State) => [...state].sort(([a], [b]) => a - b).map(([k, v]) => ({ k, v }));

interface Told {
  /** What the job read when it ran for the last time. */
  read: unknown[];
  lasts: number;
  undone: number;
  runs: number;
}

async function submit(db: Db, { steps, throws }: Job, told: Told): Promise<boolean> {
  try {
    await db.tx(1, async (tx) => {
      told.read = [];
      told.runs += 1;
      tx.onCommit(() => {
        told.lasts += 1;
      });
      tx.onRollback(() => {
        told.undone += 1;
      });
      for (const each of steps) {
        if ("read" in each) {
          told.read.push(await tx.all("SELECT k, v FROM t ORDER BY k"));
          continue;
        }
        const [sql, params] =
          "remove" in each
            ? (["DELETE FROM t WHERE k = $1", [each.remove]] as const)
            : (["INSERT INTO t (k, v) VALUES ($1, $2)", [each.put, each.value]] as const);
        if (each.isAwaited) await tx.run(sql, params);
        else tx.write(sql, params);
      }
      if (throws) throw new Error("no");
    });
    return true;
  } catch {
    return false;
  }
}

/** What a job that succeeds reads. */
function expectedReads(state: State, { steps }: Job): unknown[] {
  const reads: unknown[] = [];
  const next = new Map(state);
  for (const each of steps) {
    if ("read" in each) reads.push(sorted(next));
    else if ("remove" in each) next.delete(each.remove);
    else next.set(each.put, each.value);
  }
  return reads;
}

describe.each(engines())("on %s", (_, engine) => {
  afterAll(() => engine.remove());

  test.skipIf(engine.missing !== undefined)(
    "random transactions with random failures equal a sequential model",
    async () => {
      const { db, close } = await engine.open();
      await fc.assert(
        fc.asyncProperty(fc.array(job, { maxLength: 30 }), async (jobs) => {
          await db.run("DELETE FROM t");
          let state: State = new Map();
          const lasts: boolean[] = [];
          const reads: unknown[][] = [];
          const told: Told[] = [];
          const results: Promise<boolean>[] = [];
          for (const each of jobs) {
            if (each.startsBurst) await results.at(-1);
            const own: Told = { read: [], lasts: 0, undone: 0, runs: 0 };
            told.push(own);
            results.push(submit(db, each, own));
            const next = expected(state, each);
            lasts.push(next !== null);
            reads.push(expectedReads(state, each));
            state = next ?? state;
          }
          expect(await Promise.all(results)).toEqual(lasts);
          expect(await db.all("SELECT k, v FROM t ORDER BY k")).toEqual(sorted(state));
          for (const [index, own] of told.entries()) {
            expect(own.lasts).toBe(lasts[index] ? 1 : 0);
            expect(own.undone).toBe(own.runs - own.lasts);
            if (lasts[index]) expect(own.read).toEqual(reads[index] ?? []);
          }
        }),
        { numRuns: 60, seed: 7 },
      );
      await close();
    },
  );
});
