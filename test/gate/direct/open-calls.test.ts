/** Calls in flight when a process died: the next start reports each of them once, and none that had ended. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { openWorkspaces } from "../../../src/access/workspaces.ts";
import { Budgets } from "../../../src/gate/budget.ts";
import { reportLostCalls, UnsettledCalls } from "../../../src/gate/direct/open-calls.ts";
import { type CallBench, openCallBench } from "../../connectors/bench.ts";

let bench: CallBench;
let open: UnsettledCalls;
let budgets: Budgets;
beforeEach(async () => {
  bench = await openCallBench();
  const limits = { requestsPerMinute: 600, concurrentTasks: 60, enforcement: "soft" } as const;
  const workspaces = await openWorkspaces(bench.db, bench.clock, limits);
  budgets = new Budgets({ workspaces, clock: bench.clock, toolPrices: [], recordCrossing: async () => {} });
  open = new UnsettledCalls(bench.db);
});
afterEach(() => bench.close());

function begin(): Promise<number> {
  const call = bench.call("tool.call");
  call.about({ tool: "up.echo" });
  return open.begin(call, "{}");
}

/** Ends a call as `DirectCalls` does: it counts as in flight until its outcome is on disk. */
async function end(intent: number): Promise<void> {
  await bench.ledger.record(1, {
    phase: "outcome",
    ref: intent,
    action: "tool.call",
    outcome: "succeeded",
    channel: "mcp",
    actor: "token:tok_1",
    tool: "up.echo",
  });
  open.ended(1, intent);
}

/** Intents in the file that have no outcome. */
function lost(): number[] {
  const entries = bench.entries();
  const ended = new Set(entries.filter(({ phase }) => phase === "outcome").map(({ ref }) => ref));
  return entries.filter(({ phase, seq }) => phase === "intent" && !ended.has(seq)).map(({ seq }) => seq);
}

function note(): number | null {
  const row = bench.file
    .query<{ value: string }, [string]>("SELECT value FROM meta WHERE key = ?")
    .get("calls_open_from:1");
  return row ? Number(row.value) : null;
}

/** What a start would read if the process died now: it MUST begin at the first call in flight, or before. */
function expectFound(): void {
  const first = lost()[0];
  if (first !== undefined) expect(note() ?? Number.POSITIVE_INFINITY).toBeLessThanOrEqual(first);
}

/**
 * The next start.
 * @returns the intents that it reported, each as often as it was reported
 */
async function start(): Promise<(number | undefined)[]> {
  const before = bench.entries().length;
  await reportLostCalls({ ...bench, budgets }, 1);
  const written = bench.entries().slice(before);
  for (const entry of written) {
    expect(entry).toMatchObject({
      action: "tool.call",
      phase: "outcome",
      outcome: "failed",
      code: "unknown",
    });
    expect(entry).toMatchObject({ channel: "system", actor: "token:tok_1", tool: "up.echo" });
  }
  return written.map(({ ref }) => ref);
}

describe("calls in flight when the process dies", () => {
  test("are all reported if several began together with none in flight before", async () => {
    const intents = await Promise.all([begin(), begin(), begin(), begin()]);
    expect(note()).toBe(Math.min(...intents));
    expect(await start()).toEqual(intents);
  });

  test("are reported after the note has moved past those that had ended", async () => {
    const [first = 0, second = 0, third = 0] = await Promise.all([begin(), begin(), begin()]);
    await end(first);
    await open.save();
    expect(note()).toBe(second);
    await end(third);
    const [fourth, fifth] = await Promise.all([begin(), begin()]);
    await open.save();
    expect(await start()).toEqual([second, fourth, fifth]);
  });

  test("are reported if they began while the note was being removed", async () => {
    await end(await begin());
    const [, first, second] = await Promise.all([open.save(), begin(), begin()]);
    expect(await start()).toEqual([first, second]);
  });

  test("are reported if they were beginning when it was to be removed", async () => {
    await end(await begin());
    const [first, , second] = await Promise.all([begin(), open.save(), begin()]);
    expect(note()).not.toBeNull();
    expect(await start()).toEqual([first, second]);
  });

  test("are reported by only one start, and calls of tasks by none", async () => {
    const intent = await begin();
    const task = { phase: "intent", action: "tool.call", outcome: "allowed", task: "task_1" } as const;
    await bench.ledger.record(1, { ...task, channel: "system", actor: "token:tok_1" });
    expect(await start()).toEqual([intent]);
    expect(note()).toBeNull();
    expect(await start()).toEqual([]);
  });
});

test("if none is in flight there is no note, once that is saved, and a start reports nothing", async () => {
  const intents = await Promise.all([begin(), begin()]);
  for (const intent of intents) await end(intent);
  await open.save();
  expect(note()).toBeNull();
  expect(await start()).toEqual([]);
});

test("an outcome that cannot be written leaves its call in flight, however many end after it", async () => {
  const [first = 0, second = 0] = await Promise.all([begin(), begin()]);
  bench.file.run("CREATE TRIGGER full BEFORE INSERT ON ledger BEGIN SELECT RAISE(ABORT, 'full'); END");
  await expect(end(first)).rejects.toThrow();
  bench.file.run("DROP TRIGGER full");
  await end(second);
  await open.save();
  expect(note()).toBe(first);
  expect(await start()).toEqual([first]);
});

test("in whatever order calls begin and end, and whenever that is saved, a start finds exactly those in flight", async () => {
  /**
   * `begin` starts this many calls at once; `end` ends the nth of those in flight; `turn` lets started calls proceed.
   */
  const step = fc.oneof(
    fc.record({ kind: fc.constant("begin" as const), n: fc.integer({ min: 1, max: 3 }) }),
    fc.record({ kind: fc.constant("end" as const), n: fc.nat(5) }),
    fc.record({ kind: fc.constant("save" as const), n: fc.constant(0) }),
    fc.record({ kind: fc.constantFrom("turn" as const, "settle" as const), n: fc.constant(0) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
      open = new UnsettledCalls(bench.db);
      const out: number[] = [];
      let going: Promise<unknown>[] = [];
      const settle = async (): Promise<void> => {
        await Promise.all(going);
        going = [];
      };
      for (const { kind, n } of steps) {
        if (kind === "begin") {
          for (let times = 0; times < n; times++) going.push(begin().then((intent) => out.push(intent)));
        } else if (kind === "end") {
          const [intent] = out.splice(n % Math.max(1, out.length), 1);
          if (intent !== undefined) going.push(end(intent));
        } else if (kind === "save") going.push(open.save());
        else if (kind === "settle") await settle();
        else await new Promise(setImmediate);
        expectFound();
      }
      await settle();
      await open.save();
      expectFound();
      expect(lost()).toEqual(out.sort((a, b) => a - b));
      if (out.length === 0) expect(note()).toBeNull();
      expect(await start()).toEqual(out);
      expect([lost(), note()]).toEqual([[], null]);
    }),
    { numRuns: 100 },
  );
}, 30_000);
