/** However jobs are grouped, and whichever of them fail, the result is as if they had run one after another. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { type Bench, openBench } from "./support.ts";

type Step = { readonly put: number; readonly value: string } | { readonly remove: number };

interface Job {
  readonly steps: readonly Step[];
  readonly throws: boolean;
  /** Jobs from the same turn of the event loop belong to the same burst. */
  readonly startsBurst: boolean;
}

const key = fc.integer({ min: 0, max: 5 });
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ put: key, value: fc.string({ maxLength: 4 }) }),
  fc.record({ remove: key }),
);
const job: fc.Arbitrary<Job> = fc.record({
  steps: fc.array(step, { maxLength: 5 }),
  throws: fc.boolean(),
  startsBurst: fc.boolean(),
});

/** The state after a job, or null if the job fails: inserting an existing key violates the primary key. */
function expected(state: ReadonlyMap<number, string>, { steps, throws }: Job): Map<number, string> | null {
  const next = new Map(state);
  for (const each of steps) {
    if ("remove" in each) next.delete(each.remove);
    else if (next.has(each.put)) return null;
    else next.set(each.put, each.value);
  }
  return throws ? null : next;
}

function submit(bench: Bench, { steps, throws }: Job, told: string[], name: number): Promise<boolean> {
  const work = bench.group.submit(async (tx) => {
    tx.onCommit(() => told.push(`${name} lasts`));
    tx.onRollback(() => told.push(`${name} is undone`));
    for (const each of steps) {
      if ("remove" in each) await tx.run("DELETE FROM t WHERE k = $1", [each.remove]);
      else await tx.run("INSERT INTO t (k, v) VALUES ($1, $2)", [each.put, each.value]);
    }
    if (throws) throw new Error("no");
  }, {});
  return work.then(
    () => true,
    () => false,
  );
}

test("random jobs with random failures equal a sequential model", async () => {
  const bench = openBench();
  await fc.assert(
    fc.asyncProperty(fc.array(job, { maxLength: 40 }), async (jobs) => {
      await bench.group.submit((tx) => tx.run("DELETE FROM t"), {});
      let state = new Map<number, string>();
      const lasts: boolean[] = [];
      const told: string[] = [];
      const results: Promise<boolean>[] = [];
      for (const [name, each] of jobs.entries()) {
        if (each.startsBurst) await results.at(-1);
        results.push(submit(bench, each, told, name));
        const next = expected(state, each);
        lasts.push(next !== null);
        state = next ?? state;
      }
      expect(await Promise.all(results)).toEqual(lasts);
      expect(bench.rows()).toEqual([...state].sort(([a], [b]) => a - b).map(([k, v]) => ({ k, v })));
      expect(told.toSorted()).toEqual(
        lasts.map((each, name) => `${name} ${each ? "lasts" : "is undone"}`).toSorted(),
      );
    }),
    { numRuns: 150, seed: 7 },
  );
  bench.close();
});
