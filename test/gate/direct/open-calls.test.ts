/** Calls in flight when a process died: the next start reports each of them once, and none that had ended. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { openWorkspaces } from "../../../src/access/workspaces.ts";
import { silentLog } from "../../../src/base/log.ts";
import { Budgets } from "../../../src/gate/budget.ts";
import { localCallOwners } from "../../../src/gate/direct/call-owners.ts";
import { beginCall, reportLostCalls } from "../../../src/gate/direct/open-calls.ts";
import { type CallBench, openCallBench } from "../../connectors/bench.ts";
import { countsInMemory } from "../support.ts";

let bench: CallBench;
let budgets: Budgets;
beforeEach(async () => {
  bench = await openCallBench();
  const limits = { requestsPerMinute: 600, concurrentTasks: 60, enforcement: "soft" } as const;
  const workspaces = await openWorkspaces(bench.db, bench.clock, limits);
  budgets = new Budgets({
    workspaces,
    clock: bench.clock,
    ...countsInMemory(),
    toolPrices: [],
    recordCrossing: async () => {},
  });
});
afterEach(() => bench.close());

function begin(price?: number): Promise<number> {
  const call = bench.call("tool.call");
  call.about({ tool: "up.echo", detail: { price } });
  return beginCall(call, "{}");
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
}

/** Intents in the file that have no outcome. */
function lost(): number[] {
  const entries = bench.entries();
  const ended = new Set(entries.filter(({ phase }) => phase === "outcome").map(({ ref }) => ref));
  return entries.filter(({ phase, seq }) => phase === "intent" && !ended.has(seq)).map(({ seq }) => seq);
}

/**
 * The next start.
 * @returns the intents that it reported, each as often as it was reported
 */
async function start(): Promise<(number | undefined)[]> {
  const before = bench.entries().length;
  await reportLostCalls(
    { ...bench, owners: localCallOwners(await bench.histories()), budgets, log: silentLog },
    1,
  );
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
  test("are all reported if several began together, and those that had ended are not", async () => {
    const [first = 0, second = 0, third = 0] = await Promise.all([begin(), begin(), begin()]);
    await end(first);
    await end(third);
    const [fourth, fifth] = await Promise.all([begin(), begin()]);
    expect(await start()).toEqual([second, fourth, fifth]);
  });

  test("are reported whatever is deleted alongside the ledger", async () => {
    const intents = await Promise.all([begin(), begin()]);
    bench.file.run("DELETE FROM meta");
    expect(await start()).toEqual(intents);
  });

  test("are reported if a start stored its history while they were in flight", async () => {
    const intent = await begin();
    await bench.db.tx(1, async (tx) => {
      const read = { phase: "single", action: "agent.list", outcome: "succeeded" } as const;
      for (let n = 0; n < 4_100; n++)
        await bench.ledger.append(tx, 1, { ...read, channel: "rest", actor: "system" });
    });
    await bench.histories();
    expect(bench.file.query("SELECT value FROM meta WHERE key LIKE 'ledger_history:%'").all()).toHaveLength(
      1,
    );
    expect(await start()).toEqual([intent]);
    expect(await start()).toEqual([]);
  });

  test("are reported by only one start, and calls of tasks by none", async () => {
    const intent = await begin();
    const task = { phase: "intent", action: "tool.call", outcome: "allowed", task: "task_1" } as const;
    await bench.ledger.record(1, { ...task, channel: "system", actor: "token:tok_1" });
    expect(await start()).toEqual([intent]);
    expect(await start()).toEqual([]);
  });
});

test("a lost call that cannot be charged is left for the next start, and the others are reported", async () => {
  const intents = [await begin(3), await begin(5), await begin(7)];
  // An error that does not come from a store that cannot be written.
  bench.file.run(`CREATE TRIGGER uncharged BEFORE INSERT ON spending WHEN NEW.credits = 5
    BEGIN INSERT INTO workspaces (id, name, created_at) VALUES (1, 'w1', 0); END`);
  expect(await start()).toEqual([intents[0], intents[2]]);
  bench.file.run("DROP TRIGGER uncharged");
  expect(await start()).toEqual([intents[1]]);
});

test("if none is in flight, a start reports nothing", async () => {
  const intents = await Promise.all([begin(), begin()]);
  for (const intent of intents) await end(intent);
  expect(await start()).toEqual([]);
});

test("an outcome that cannot be written leaves its call in flight, however many end after it", async () => {
  const [first = 0, second = 0] = await Promise.all([begin(), begin()]);
  bench.file.run("CREATE TRIGGER full BEFORE INSERT ON ledger BEGIN SELECT RAISE(ABORT, 'full'); END");
  await expect(end(first)).rejects.toThrow();
  bench.file.run("DROP TRIGGER full");
  await end(second);
  expect(await start()).toEqual([first]);
});

test("in whatever order calls begin and end, a start finds exactly those in flight", async () => {
  /**
   * `begin` starts this many calls at once; `end` ends the nth of those in flight; `turn` lets started calls proceed.
   */
  const step = fc.oneof(
    fc.record({ kind: fc.constant("begin" as const), n: fc.integer({ min: 1, max: 3 }) }),
    fc.record({ kind: fc.constant("end" as const), n: fc.nat(5) }),
    fc.record({ kind: fc.constantFrom("turn" as const, "settle" as const), n: fc.constant(0) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
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
        } else if (kind === "settle") await settle();
        else await new Promise(setImmediate);
      }
      await settle();
      expect(lost()).toEqual(out.sort((a, b) => a - b));
      expect(await start()).toEqual(out);
      expect(lost()).toEqual([]);
    }),
    { numRuns: 100 },
  );
}, 30_000);
