import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { finishedTask } from "../access/routes.ts";
import { FakeClock } from "../support/clock.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";

const START = Date.UTC(2026, 0, 2, 23, 59, 0);
const clock = new FakeClock(START);
let gateway: TestGateway;
let entries: Entry[];
let actors: string[];

interface Entry {
  readonly seq: number;
  readonly ts: string;
  readonly agent: string | null;
  readonly actor: string;
  readonly action: string;
  readonly tier: number | null;
}

/** Traffic by three actors concerning three agents, over three days. */
beforeAll(async () => {
  gateway = await startGateway({ clock });
  const { call } = gateway;
  for (const agent of ["a", "b", "c"]) await gateway.agent(agent);
  const tokens = [
    gateway.admin,
    await gateway.token({ agent: "a", scopes: ["tasks:write", "tasks:read"] }),
    await gateway.token({ scopes: ["agents:read", "tasks:write"] }),
  ];
  for (let round = 0; round < 12; round++) {
    const token = tokens[round % 3] ?? gateway.admin;
    const agent = ["a", "b", "c"][round % 3] ?? "a";
    await call("GET", `/v1/agents/${agent}`, { token });
    await call("POST", "/v1/tasks", { token, body: { agent, prompt: "x", tier: 1 + (round % 4) } });
    await finishedTask(gateway, agent);
    await call("GET", "/v1/agents", { token: round % 2 === 0 ? null : token });
    clock.advance(30_000);
    if (round % 4 === 3) clock.setWall(clock.now() + 86_400_000);
  }
  // The tests look at what was written so far. Reading adds entries with a later date.
  clock.setWall(Date.UTC(2026, 1, 1));
  entries = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const more: string = cursor === "" ? "" : `&cursor=${cursor}`;
    const { body } = await call("GET", `/v1/ledger?limit=200&to=2026-02-01T00:00:00Z${more}`);
    entries.push(...body.data);
    cursor = body.next_cursor;
  }
  actors = [...new Set(entries.map((entry) => entry.actor))];
});
afterAll(() => gateway.stop());

interface Filter {
  readonly agent?: string;
  readonly actor?: string;
  readonly action?: string;
  readonly tier?: number;
  readonly date?: string;
  readonly from?: string;
  readonly to?: string;
}

function expected(filter: Filter): Entry[] {
  return entries.filter(
    (entry) =>
      (filter.agent === undefined || entry.agent === filter.agent) &&
      (filter.actor === undefined || entry.actor === filter.actor) &&
      (filter.action === undefined || entry.action === filter.action) &&
      (filter.tier === undefined || entry.tier === filter.tier) &&
      (filter.date === undefined || entry.ts.startsWith(filter.date)) &&
      (filter.from === undefined || Date.parse(entry.ts) >= Date.parse(filter.from)) &&
      (filter.to === undefined || Date.parse(entry.ts) < Date.parse(filter.to)),
  );
}

/** Reads all pages, without the entries after the traffic. */
async function ask(filter: Filter, order: "asc" | "desc", limit: number): Promise<Entry[]> {
  const found: Entry[] = [];
  const query = new URLSearchParams({ order, limit: String(limit) });
  for (const [name, value] of Object.entries(filter)) if (value !== undefined) query.set(name, String(value));
  for (;;) {
    const { status, body } = await gateway.call("GET", `/v1/ledger?${query}`);
    expect(status).toBe(200);
    expect(body.data.length).toBeLessThanOrEqual(limit);
    found.push(...body.data);
    if (body.next_cursor === null) break;
    query.set("cursor", body.next_cursor);
  }
  const last = entries.length;
  const kept = found.filter((entry) => entry.seq <= last);
  return order === "asc" ? kept : kept.reverse();
}

test("the traffic contains everything that the filters distinguish", () => {
  expect(entries.length).toBeGreaterThan(100);
  expect(actors.length).toBeGreaterThanOrEqual(4);
  expect(new Set(entries.map((entry) => entry.ts.slice(0, 10))).size).toBeGreaterThanOrEqual(3);
});

describe("a single filter finds the same entries as filtering in the test", () => {
  const cases: readonly Filter[] = [
    { agent: "a" },
    { agent: "nobody" },
    { agent: "A" },
    { action: "task.dispatch" },
    { action: "task" },
    { action: "model.call" },
    { tier: 1 },
    { tier: 3 },
    { tier: 99 },
    { actor: "anonymous" },
    { actor: "system" },
    { date: "2026-01-02" },
    { date: "2026-01-04" },
    { date: "2025-12-31" },
    { from: "2026-01-02T23:59:30.000Z" },
    { to: "2026-01-02T23:59:30.000Z" },
    { from: "2026-01-03T00:59:30+01:00" },
    { from: "2026-01-02T23:59:30.000Z", to: "2026-01-02T23:59:30.001Z" },
    { from: "2026-01-03T00:00:00Z", to: "2026-01-02T00:00:00Z" },
    { date: "2026-01-02", from: "2026-01-03T00:00:00Z" },
  ];
  test.each(cases.map((filter) => [JSON.stringify(filter), filter] as const))("%s", async (_, filter) => {
    for (const order of ["asc", "desc"] as const)
      expect(await ask(filter, order, 7)).toEqual(expected(filter));
  });
  test("each actor", async () => {
    for (const actor of actors) expect(await ask({ actor }, "asc", 50)).toEqual(expected({ actor }));
  });
});

test("from is inclusive and to exclusive, to the millisecond and finer", async () => {
  const at = "2026-01-02T23:59:30";
  const there = entries.filter((entry) => entry.ts === `${at}.000Z`).length;
  expect(there).toBeGreaterThan(0);
  const count = async (from: string, to: string) => (await ask({ from, to }, "asc", 200)).length;
  expect(await count(`${at}.000Z`, `${at}.001Z`)).toBe(there);
  expect(await count(`${at}.0001Z`, `${at}.001Z`)).toBe(0);
  expect(await count(`${at}.000Z`, `${at}.0001Z`)).toBe(there);
  expect(await count(`${at}.000Z`, `${at}.000Z`)).toBe(0);
});

test("any combination of filters, order and page length", async () => {
  const instant = fc
    .integer({ min: 0, max: 4 * 86_400 })
    .map((s) => new Date(START - 60_000 + s * 1_000).toISOString());
  const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 1 });
  const filter = fc.record({
    agent: maybe(fc.constantFrom("a", "b", "c", "d")),
    actor: maybe(fc.nat({ max: 20 }).map((index) => actors[index % actors.length] ?? "system")),
    action: maybe(fc.constantFrom("task.dispatch", "agent.read", "agent.list", "model.call", "auth.refused")),
    tier: maybe(fc.integer({ min: 1, max: 4 })),
    date: maybe(fc.constantFrom("2026-01-02", "2026-01-03", "2026-01-04", "2026-01-05")),
    from: maybe(instant),
    to: maybe(instant),
  });
  await fc.assert(
    fc.asyncProperty(
      filter,
      fc.constantFrom("asc", "desc"),
      fc.integer({ min: 1, max: 60 }),
      async (given, order, limit) => {
        const filter = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
        // Without an upper bound, this test's own reads would be found as well, and the pages would not end with the
        // traffic.
        const bounded: Filter = { to: "2026-02-01T00:00:00Z", ...filter };
        expect(await ask(bounded, order, limit)).toEqual(expected(bounded));
      },
    ),
    { numRuns: 150 },
  );
}, 60_000);

describe("a bad filter is refused, naming it", () => {
  test.each([
    ["tier", "0"],
    ["tier", "one"],
    ["tier", "1.5"],
    ["tier", ""],
    ["date", "2026-1-2"],
    ["date", "2026-02-30"],
    ["date", "2026-13-01"],
    ["date", "2026-00-10"],
    ["date", "02.01.2026"],
    ["date", "2026-01-02T00:00:00Z"],
    ["date", ""],
    ["from", "yesterday"],
    ["from", "2026-01-02"],
    ["from", "2026-01-02T00:00:00"],
    ["from", "2026-01-02 00:00:00Z"],
    ["from", "2026-02-30T00:00:00Z"],
    ["from", "2026-01-02T24:00:00Z"],
    ["from", "2026-01-02T23:60:00Z"],
    ["from", "2026-01-02T00:00:00+25:00"],
    ["from", "+12026-01-02T00:00:00Z"],
    ["from", "1767312000"],
    ["to", "tomorrow"],
    ["to", "2026-01-02T00:00:00.Z"],
    ["order", "ASC"],
    ["order", "seq"],
    ["action", ""],
    ["agent", ""],
    ["actor", ""],
    ["agent", "x".repeat(201)],
    ["format", "xml"],
    ["outcome", "denied"],
  ])("%s=%s", async (name, value) => {
    const answer = await gateway.call("GET", `/v1/ledger?${new URLSearchParams({ [name]: value })}`);
    expect([answer.status, answer.body.code]).toEqual([422, "validation_failed"]);
    expect(answer.body.errors.map((error: { path: string }) => error.path)).toEqual([`/${name}`]);
  });
});
