/** Statistics on a separate store. Each use is counted exactly once at each step, wherever its counts have moved. */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { silentLog } from "../../src/base/log.ts";
import { recordUsage } from "../../src/gate/usage/counts.ts";
import { addUsage, decodeUsage, encodeUsage, mergeUsage, noUsage } from "../../src/gate/usage/facts.ts";
import { slotOf, type UsageRecord } from "../../src/gate/usage/record.ts";
import { type Breakdown, type UsageReport, usageReport } from "../../src/gate/usage/report.ts";
import { oldestKept, USAGE_STEPS, UsageSlots, type UsageStep } from "../../src/gate/usage/slots.ts";
import { UsageTally } from "../../src/gate/usage/tally.ts";
import { type Db, StoreUnavailable } from "../../src/store/db.ts";
import { type LedgerBench, openLedger } from "../ledger/support.ts";

setDefaultTimeout(60_000);

const STEPS = ["5m", "1h", "1d"] as const;
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const AGENTS = 11;

let bench: LedgerBench;
let slots: UsageSlots;
beforeEach(async () => {
  bench = await openLedger();
  for (const workspaceId of [1, 2]) {
    for (let index = 1; index <= AGENTS; index++) {
      await bench.db.run(
        `INSERT INTO agents (id, workspace_id, name, owner, memory_scope, tier_policy, tools, max_steps, status, version,
           created_at, updated_at) VALUES ($1, $2, $3, '', '', '', '', 1, 'active', 1, 0, 0)`,
        [(workspaceId - 1) * AGENTS + index, workspaceId, `agent-${index}`],
      );
    }
  }
  slots = new UsageSlots(bench.db, bench.clock, () => [1, 2]);
});
afterEach(() => bench.close());

function report(
  step: UsageStep,
  from: number,
  to: number,
  agentIds: number[] | null = null,
  workspaceId = 1,
) {
  const { width } = USAGE_STEPS[step];
  const range = { from: slotOf(from, width), to: slotOf(to - 1, width) + width };
  return usageReport(bench.db, { workspaceId, agentIds, ...range, width });
}

const record = (usage: UsageRecord) => bench.db.tx(1, async (tx) => recordUsage(tx, usage));
const sum = (values: readonly number[]) => values.reduce((all, each) => all + each, 0);
const call = (more: Partial<UsageRecord> = {}): UsageRecord => ({
  ...{ workspaceId: 1, agentId: 1, kind: "model", name: "up/a", outcome: "succeeded" },
  ...{ at: bench.clock.now(), durationMs: 7 },
  ...more,
});

/** Amounts by name, as the breakdown reports them; the remaining ones together as `other`. */
function told({ top, other }: Breakdown): [string | null, readonly number[]][] {
  const named = top.map(({ name, micros }): [string | null, readonly number[]] => [name, micros]);
  return other === null ? named : [...named, ["other", other]];
}

function expectSame(found: UsageReport, all: readonly UsageRecord[], width: number): void {
  for (const [index, start] of found.starts.entries()) {
    const facts = found.slots[index];
    const here = all.filter(({ at }) => slotOf(at, width) === start);
    const outcomes = new Map<string, number>();
    for (const { kind, outcome } of here) {
      outcomes.set(`${kind}.${outcome}`, (outcomes.get(`${kind}.${outcome}`) ?? 0) + 1);
    }
    expect([...(facts?.outcomes ?? [])].sort()).toEqual([...outcomes].sort());
    expect(facts?.credits).toBe(sum(here.map(({ credits }) => credits ?? 0)));
    expect(facts?.inputTokens).toBe(sum(here.map(({ inputTokens }) => inputTokens ?? 0)));
    expect(facts?.outputTokens).toBe(sum(here.map(({ outputTokens }) => outputTokens ?? 0)));
    for (const kind of ["task", "model", "tool"] as const) {
      const measured = here.filter(
        (each) =>
          each.kind === kind && ["succeeded", "failed"].includes(each.outcome) && each.durationMs !== null,
      );
      expect(sum(facts?.latency[kind] ?? [])).toBe(measured.length);
    }
  }
  expect(sum([...found.total.outcomes.values()])).toBe(all.length);
  expect(found.total.credits).toBe(sum(all.map(({ credits }) => credits ?? 0)));
  // Each named agent has exactly what it spent, and together they have everything that was spent.
  const ofAgent = (name: string | null) =>
    all.filter(({ agentId }) => (agentId === null ? name === null : `agent-${agentId}` === name));
  for (const { name, micros } of found.byAgent.top) {
    expect(sum(micros)).toBe(sum(ofAgent(name).map(({ credits }) => credits ?? 0)));
  }
  const agents = told(found.byAgent);
  expect(found.byAgent.top.length).toBeLessThanOrEqual(8);
  for (const [index, facts] of found.slots.entries()) {
    expect(sum(agents.map(([, micros]) => micros[index] ?? 0))).toBe(facts.credits);
  }
  const least = Math.min(...found.byAgent.top.map(({ micros }) => sum(micros)));
  const shown = new Set(found.byAgent.top.map(({ name }) => name));
  for (let index = 1; index <= AGENTS; index++) {
    const name = `agent-${index}`;
    const micros = sum(ofAgent(name).map(({ credits }) => credits ?? 0));
    if (!shown.has(name)) expect(micros === 0 || (shown.size === 8 && micros <= least)).toBe(true);
  }
  for (const [kind, of] of [["model", found.byModel] as const, ["tool", found.byTool] as const]) {
    const credits = all.filter((each) => each.kind === kind).map(({ credits }) => credits ?? 0);
    expect(sum(told(of).flatMap(([, micros]) => micros))).toBe(sum(credits));
  }
}

const usage = fc.record({
  agentId: fc.oneof(fc.constant(null), fc.integer({ min: 1, max: AGENTS })),
  call: fc.oneof(
    fc.record({ kind: fc.constant("task" as const), name: fc.constant("") }),
    fc.record({ kind: fc.constant("model" as const), name: fc.constantFrom("up/a", "up/b", "__proto__") }),
    fc.record({ kind: fc.constant("tool" as const), name: fc.constantFrom("time.now", "(unknown)") }),
  ),
  outcome: fc.constantFrom("succeeded", "failed", "cancelled", "unknown"),
  durationMs: fc.oneof(fc.constant(null), fc.integer({ min: 0, max: 100_000 })),
  credits: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 1e9 })),
  inputTokens: fc.integer({ min: 0, max: 1e6 }),
  outputTokens: fc.integer({ min: 0, max: 1e6 }),
  /** Minutes before this use. */
  after: fc.oneof(fc.integer({ min: 0, max: 6 }), fc.integer({ min: 0, max: 600 })),
  /** What happens after it is counted. */
  next: fc.constantFrom("nothing", "nothing", "keep house", "note beside"),
});

test("at each step everything is counted exactly once, before and after it is moved, even if late", async () => {
  let elapsed = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(usage, { maxLength: 40 }), async (plan) => {
      // Each run has a different time.
      const now = bench.clock.now() + 3 * DAY;
      bench.clock.setWall(slotOf(now, DAY) + 23 * HOUR);
      const start = bench.clock.now();
      const all: UsageRecord[] = [];
      const tally = new UsageTally(bench.db, silentLog);
      for (const { call: made, after, next, ...rest } of plan) {
        bench.clock.setWall(Math.min(bench.clock.now() + after * MINUTE, start + 40 * HOUR));
        // Some uses belong to a slot whose counts have already moved.
        const at =
          next === "nothing" && after > 5
            ? Math.max(start, bench.clock.now() - 7 * MINUTE)
            : bench.clock.now();
        const credits = made.kind === "task" ? 0 : rest.credits;
        const one: UsageRecord = { workspaceId: 1, ...made, ...rest, credits, at };
        all.push(one);
        if (next === "note beside") tally.note(one);
        else await record(one);
        if (next === "keep house") await slots.keepHouse();
      }
      await tally.flush();
      for (const isMoved of [false, true]) {
        if (isMoved) {
          bench.clock.setWall(bench.clock.now() + 5 * MINUTE);
          await slots.keepHouse();
        }
        for (const step of STEPS) {
          const { width } = USAGE_STEPS[step];
          const end = bench.clock.now() + 1;
          expectSame(await report(step, start, end), all, width);
          const own = all.filter(({ agentId }) => agentId === 3);
          expectSame(await report(step, start, end, [3]), own, width);
          expect((await report(step, start, end, null, 2)).total.outcomes.size).toBe(0);
        }
      }
      elapsed += all.length;
    }),
    { numRuns: 25, seed: 7 },
  );
  expect(elapsed).toBeGreaterThan(100);
});

test("nothing older than the present five minutes stays in the counts, and hundreds of rows are moved", async () => {
  for (let index = 0; index < 450; index++) await record(call({ name: `up/${index}`, credits: 1 }));
  await slots.keepHouse();
  const counts = () => bench.db.all("SELECT slot FROM usage_counts WHERE workspace_id = 1");
  expect((await counts()).length).toBe(450);
  bench.clock.setWall(bench.clock.now() + 5 * MINUTE);
  await slots.keepHouse();
  expect(await counts()).toEqual([]);
  const now = bench.clock.now();
  const found = await report("5m", now - HOUR, now);
  expect([found.total.credits, found.byModel.top.length]).toEqual([450, 8]);
  expect(sum(found.byModel.other ?? [])).toBe(442);
});

test("the most expensive are listed by name, wherever their calls are stored, and the others as one", async () => {
  // Half of each agent's use is recorded before the move, half after it.
  const spend = async (): Promise<void> => {
    for (let index = 1; index <= AGENTS; index++) {
      await record(call({ agentId: index, name: `up/${index}`, credits: index }));
    }
  };
  await spend();
  bench.clock.setWall(bench.clock.now() + 5 * MINUTE);
  await slots.keepHouse();
  await spend();
  const now = bench.clock.now();
  const { byAgent, byModel } = await report("1d", now, now + 1);
  const top = (name: (index: number) => string) =>
    [11, 10, 9, 8, 7, 6, 5, 4].map((index) => ({ name: name(index), micros: [2 * index] }));
  expect(byAgent).toEqual({ top: top((index) => `agent-${index}`), other: [12] });
  expect(byModel).toEqual({ top: top((index) => `up/${index}`), other: [12] });
});

test("a name that was freed and reused counts as one, and calls without an agent have none", async () => {
  await bench.db.run("UPDATE agents SET archived_at = 1, name = 'again' WHERE id = 1");
  await bench.db.run("UPDATE agents SET name = 'again' WHERE id = 2");
  await record(call({ agentId: 1, credits: 2 }));
  await record(call({ agentId: 2, credits: 3 }));
  await record(call({ agentId: null, credits: 4 }));
  const now = bench.clock.now();
  const { byAgent } = await report("1d", now, now + 1);
  expect(byAgent).toEqual({
    top: [
      { name: "again", micros: [5] },
      { name: null, micros: [4] },
    ],
    other: null,
  });
});

test("counts that the store refused are written the next time", async () => {
  let isFull = true;
  const db: Db = {
    ...bench.db,
    tx: (ledgers, work, options) =>
      isFull ? Promise.reject(new StoreUnavailable("disk full")) : bench.db.tx(ledgers, work, options),
  };
  const tally = new UsageTally(db, silentLog);
  tally.note(call());
  expect(await tally.flush().catch(String)).toContain("disk full");
  tally.note(call());
  tally.note(call({ workspaceId: 2, agentId: null }));
  isFull = false;
  await tally.flush();
  await tally.flush();
  const now = bench.clock.now();
  const counted = async (id: number) =>
    (await report("1h", now, now + 1, null, id)).total.outcomes.get("model.succeeded");
  expect([await counted(1), await counted(2)]).toEqual([2, 1]);
});

test("memory is bounded while the store refuses everything, and uncounted uses are logged", async () => {
  const told: unknown[] = [];
  const log = { ...silentLog, warn: (_message: string, facts?: object) => void told.push(facts) };
  const tally = new UsageTally(bench.db, log);
  for (let index = 0; index < 10_002; index++) tally.note(call({ name: `tool-${index}` }));
  tally.note(call({ name: "tool-0" }));
  await tally.flush();
  expect(told).toEqual([{ calls: 2 }]);
  const now = bench.clock.now();
  expect((await report("1h", now, now + 1)).total.outcomes.get("model.succeeded")).toBe(10_001);
});

test("each step is kept exactly as long as documented", async () => {
  const begun = bench.clock.now();
  // More agents than one transaction handles, and another workspace.
  for (let index = 1; index <= 120; index++) await record(call({ agentId: index }));
  await record(call({ workspaceId: 2 }));
  const rows = (width: number) =>
    bench.db.all<{ workspace: number; agent: number; slot: number }>(
      `SELECT workspace_id AS workspace, agent_id AS agent, slot FROM usage_slots WHERE width = $1`,
      [width],
    );
  for (const step of STEPS) {
    const { width, kept } = USAGE_STEPS[step];
    // The last moment at which the slot may be requested.
    const last = slotOf(begun, width) + width + kept - 1;
    bench.clock.setWall(last);
    await slots.keepHouse();
    expect(oldestKept(step, last)).toBe(slotOf(begun, width));
    expect([step, (await rows(width)).length]).toEqual([step, 121 + 2]);
    bench.clock.setWall(last + HOUR);
    await slots.keepHouse();
    expect([step, await rows(width)]).toEqual([step, []]);
    bench.clock.setWall(begun);
    await record(call({ at: begun }));
    if (step !== "1d") {
      // Counts deleted from one step still exist in the coarser ones.
      expect((await rows(USAGE_STEPS["1d"].width)).length).toBeGreaterThan(0);
    }
  }
});

test("what an earlier version has stored, without clients' calls, is read and added to", () => {
  const stored =
    '{"tokens":[3,4],"outcomes":{"model.succeeded":2},"latency":{"task":[],"model":[0,2],"tool":[]},"models":{"up/a":5},"tools":{}}';
  const facts = noUsage();
  mergeUsage(facts, decodeUsage(5, stored));
  const client = { ...noUsage(), credits: 7, clients: { credits: 7, inputTokens: 1, outputTokens: 2 } };
  mergeUsage(facts, decodeUsage(7, encodeUsage(client)));
  expect(facts).toMatchObject({ credits: 12, inputTokens: 3, clients: { credits: 7, outputTokens: 2 } });
  expect(facts.latency).toEqual({ task: [], model: [0, 2], tool: [], client: [], count: [] });
});

test("tools beyond 200 in a slot are counted together, and no cost is lost", () => {
  const [facts, others, all] = [noUsage(), noUsage(), noUsage()];
  const row = {
    slot: 0,
    agentId: 1,
    outcome: "succeeded",
    bucket: 0,
    count: 1,
    inputTokens: 0,
    outputTokens: 0,
  };
  for (let index = 0; index < 1_000; index++) {
    const slot = index % 2 === 0 ? facts : others;
    addUsage(slot, { ...row, kind: "tool", name: `made.tool_${index}`, credits: 3 });
  }
  mergeUsage(all, facts);
  mergeUsage(all, decodeUsage(others.credits, encodeUsage(others)));
  for (const { tools } of [facts, others, all]) expect(tools.size).toBe(201);
  const costs = [...all.tools.values()].reduce((sum, each) => sum + each, 0);
  expect([costs, all.credits]).toEqual([3_000, 3_000]);
});
