/** `GET /v1/usage`: who may read it, what it refuses, and that its numbers match what tasks and calls used. */

import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { databasePath } from "../../src/store/directory.ts";
import { NAMED_SCOPES } from "../access/routes.ts";
import { connect } from "../mcp/support.ts";
import { FakeClock } from "../support/clock.ts";
import type { Script } from "../support/fake-model.ts";
import { ledger, run, type Stage, startStage, until } from "../tasks/support.ts";

setDefaultTimeout(60_000);

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const HOUSEKEEPING = 5_000;
/** Shortly before the end of a five-minute slot, an hour and a day. */
const BEGUN = Date.UTC(2026, 4, 5, 23, 54, 30);

let clock: FakeClock;
let stage: Stage;
beforeAll(async () => {
  clock = new FakeClock(BEGUN);
  stage = await startStage({
    clock,
    tiers: { 1: ["a"], 2: ["b"], 3: ["broken"], 4: ["builtin/extractive"] },
    prices: { a: [0.333333, 0.666667], b: [1, 2] },
    more: 'tools: { "time.*": 0.000007 }',
  });
  await stage.gateway.agent("clerk");
  await stage.gateway.agent("scribe");
});
afterAll(() => stage.stop());

// biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary JSON.
async function usage(query = "", token?: string): Promise<any> {
  const answer = await stage.gateway.call("GET", `/v1/usage${query}`, token === undefined ? {} : { token });
  if (answer.status !== 200) throw new Error(`${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body;
}

const sum = (values: readonly number[]) => values.reduce((all, each) => all + each, 0);
const micros = (credits: number) => Math.round(credits * 1e6);

describe("it is refused", () => {
  test("without a token, and without the scope ledger:read", async () => {
    const { call, token } = stage.gateway;
    expect((await call("GET", "/v1/usage", { token: null })).status).toBe(401);
    const others = NAMED_SCOPES.filter((scope) => scope !== "ledger:read");
    const answer = await call("GET", "/v1/usage", { token: await token({ scopes: others }) });
    expect([answer.status, answer.body.code]).toEqual([403, "scope_missing"]);
  });

  const now = new Date(BEGUN).toISOString();
  test.each([
    ["step=2h", "/step"],
    ["by=person", "/by"],
    ["from=yesterday", "/from"],
    ["to=2026-02-30T00:00:00Z", "/to"],
    [`from=${now}&to=${now}`, "/from"],
    ["from=2026-05-06T00:00:00Z&to=2026-05-05T00:00:00Z", "/from"],
    // 1,001 hours.
    ["from=2026-03-25T07:00:00Z&to=2026-05-05T23:30:00Z", "/from"],
    ["step=5m&from=2026-05-03T23:49:59Z&to=2026-05-04T03:00:00Z", "/from"],
    ["step=1d&from=2025-03-30T23:59:59Z", "/from"],
    ["from=0001-01-01T00:00:00Z", "/from"],
    ["to=9999-12-31T23:59:59Z&from=2026-05-05T00:00:00Z", "/from"],
    ["agent=", "/agent"],
    ["page=2", "/page"],
  ])("if the query is %s, naming %s", async (query, path) => {
    const answer = await stage.gateway.call("GET", `/v1/usage?${query}`);
    expect([answer.status, answer.body.code, answer.body.errors?.[0]?.path]).toEqual([
      422,
      "validation_failed",
      path,
    ]);
  });

  test("but not at the limits: a thousand steps, and the oldest one kept", async () => {
    expect((await usage("?from=2026-03-25T08:00:00Z&to=2026-05-05T23:30:00Z")).slots).toHaveLength(1_000);
    const oldest = await usage("?step=5m&from=2026-05-03T23:50:00Z&to=2026-05-04T03:00:00Z");
    expect(oldest.slots[0]).toBe("2026-05-03T23:50:00.000Z");
    expect((await usage("?step=1d&from=2025-03-31T00:00:00Z")).slots).toHaveLength(401);
  });

  test("for an unknown agent, and for one that is not the token's", async () => {
    const unknown = await stage.gateway.call("GET", "/v1/usage?agent=nobody");
    expect([unknown.status, unknown.body.code]).toEqual([404, "agent_not_found"]);
    const token = await stage.gateway.token({ agent: "clerk", scopes: ["ledger:read"] });
    const other = await stage.gateway.call("GET", "/v1/usage?agent=scribe", { token });
    expect([other.status, other.body.code]).toEqual([403, "agent_forbidden"]);
  });
});

test("without use every count is 0, and no latency is known", async () => {
  const { slots, ...found } = await usage("?step=1d");
  expect(slots).toEqual(["2026-05-04T00:00:00.000Z", "2026-05-05T00:00:00.000Z"]);
  expect(found).toMatchObject({
    from: "2026-05-04T00:00:00.000Z",
    to: "2026-05-06T00:00:00.000Z",
    step: "1d",
    step_seconds: 86_400,
    agent: null,
    tasks: { succeeded: [0, 0], failed: [0, 0], cancelled: [0, 0] },
    models: { calls: [0, 0], failed: [0, 0], cancelled: [0, 0] },
    tools: { calls: [0, 0], failed: [0, 0], denied: [0, 0], unknown: [0, 0] },
    credits: {
      total: [0, 0],
      by_agent: { top: [], other: null },
      by_model: { top: [], other: null },
      by_tool: { top: [], other: null },
    },
    tokens: { input: [0, 0], output: [0, 0] },
    latency_ms: { task: { p50: [null, null], p95: [null, null], p99: [null, null] } },
    totals: {
      tasks: { succeeded: 0 },
      credits: 0,
      latency_ms: { tool: { p50: null, p95: null, p99: null } },
    },
  });
});

describe("with tasks across slot boundaries", () => {
  // biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary JSON.
  const tasks: any[] = [];

  beforeAll(async () => {
    const { gateway, upstream } = stage;
    const answer = (prompt: number, output: number, tool?: string) => ({
      usage: { prompt_tokens: prompt, completion_tokens: output },
      ...(tool ? { toolCalls: [{ name: tool, arguments: {} }] } : { chunks: ["ok"] }),
    });
    const script = (prompt: number, output: number): Script => {
      return ({ body }) => {
        const text = JSON.stringify(body.messages);
        const isAsked = body.messages.at(-1)?.role === "tool";
        if (isAsked) return answer(prompt, output);
        if (text.includes("made up")) return answer(prompt, output, "no__such_tool_of_anybody");
        return answer(prompt, output, text.includes("what time") ? "time__now" : undefined);
      };
    };
    upstream.script("a", script(7, 3));
    upstream.script("b", script(1_000, 11));
    upstream.script("broken", { status: 400 });
    const plans = [
      { agent: "clerk", tier: 1 },
      { agent: "clerk", tier: 1, prompt: "what time is it", tools: ["time.now"] },
      { agent: "scribe", tier: 2, prompt: "what time is it", tools: ["time.now"] },
      { agent: "scribe", tier: 3 },
      { agent: "clerk", tier: 4, prompt: "Nothing is asked." },
      { agent: "scribe", tier: 2, prompt: "made up", tools: ["time.now"] },
    ];
    // 23:54:30, 23:56:30, 23:58:30, 00:00:30 …
    for (const plan of [...plans, ...plans]) {
      tasks.push(await run(gateway, plan));
      clock.advance(2 * MINUTE);
    }
    await until(async () => (await usage("?step=5m")).totals.tasks.failed === 2);
  });

  test.each(["5m", "1h", "1d"])("in steps of %s it is what the tasks and the ledger say", async (step) => {
    const found = await usage(`?step=${step}`);
    const { totals } = found;
    const width = found.step_seconds * 1_000;
    expect(found.slots.length).toBeGreaterThan(1);
    for (const [index, slot] of found.slots.entries()) {
      const start = Date.parse(slot);
      const here = tasks.filter(
        ({ finished_at: at }) => Math.floor(Date.parse(at) / width) * width === start,
      );
      const count = (status: string) => here.filter((task) => task.status === status).length;
      expect(found.tasks.succeeded[index]).toBe(count("succeeded"));
      expect(found.tasks.failed[index]).toBe(count("failed"));
      expect(micros(found.credits.total[index])).toBe(sum(here.map((task) => micros(task.credits_consumed))));
      expect(found.tokens.input[index]).toBe(sum(here.map((task) => task.usage.input_tokens)));
      expect(found.tokens.output[index]).toBe(sum(here.map((task) => task.usage.output_tokens)));
      const measured = found.tasks.succeeded[index] + found.tasks.failed[index] > 0;
      expect(found.latency_ms.task.p99[index] !== null).toBe(measured);
    }
    expect(totals.tasks).toEqual({ succeeded: 10, failed: 2, cancelled: 0 });
    expect(micros(totals.credits)).toBe(sum(tasks.map((task) => micros(task.credits_consumed))));
    const entries = await ledger(stage.gateway);
    const calls = entries.filter(({ action, phase }) => action === "model.call" && phase === "outcome");
    expect(totals.models.calls).toBe(calls.length);
    expect(totals.models.failed).toBe(calls.filter(({ outcome }) => outcome === "failed").length);
    expect(totals.tools).toEqual({ calls: 6, failed: 0, denied: 2, unknown: 0 });
  });

  test("credits are listed by agent, by model and by tool, greatest first", async () => {
    const { credits } = await usage();
    const of = (agent: string) => tasks.filter((task) => task.agent === agent);
    const spent = (agent: string) => sum(of(agent).map((task) => micros(task.credits_consumed)));
    // biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary JSON.
    const told = ({ top, other }: any) => {
      expect(other).toBeNull();
      for (const { credits: whole, values } of top) expect(micros(whole)).toBe(sum(values.map(micros)));
      // biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary JSON.
      return top.map(({ name, credits: whole }: any) => [name, micros(whole)]);
    };
    expect(told(credits.by_agent)).toEqual([
      ["scribe", spent("scribe")],
      ["clerk", spent("clerk")],
    ]);
    const tool = 4 * 7;
    // `a` served six calls of 7 × 0.000333333 + 3 × 0.000666667 credits, each rounded up once.
    const a = 6 * Math.ceil((7 * 333_333 + 3 * 666_667) / 1_000);
    expect(told(credits.by_model)).toEqual([
      ["up/b", spent("scribe") + spent("clerk") - a - tool],
      ["up/a", a],
    ]);
    expect(told(credits.by_tool)).toEqual([["time.now", tool]]);
    for (const by of ["agent", "model", "tool", "none"]) {
      const answered = (await usage(`?by=${by}`)).credits;
      for (const each of ["agent", "model", "tool"]) {
        expect(answered[`by_${each}`]).toEqual(each === by ? credits[`by_${each}`] : null);
      }
    }
  });

  test("a tool's name that a model invented is not in the statistics", () => {
    const file = new Database(databasePath(stage.gateway.dataDir), { readonly: true });
    const rows = file.query("SELECT * FROM usage_counts").all();
    const slots = file.query("SELECT facts FROM usage_slots").all();
    file.close();
    expect(JSON.stringify([rows, slots])).not.toContain("such_tool");
    expect(JSON.stringify([rows, slots])).toContain("time.now");
  });

  test("one agent's use can be requested by name, and is all that its token sees", async () => {
    const token = await stage.gateway.token({ agent: "clerk", scopes: ["ledger:read"] });
    const all = await usage("?step=5m");
    const clerk = await usage("?step=5m&agent=clerk");
    const scribe = await usage("?step=5m&agent=scribe");
    expect(await usage("?step=5m", token)).toEqual(clerk);
    expect(await usage("?step=5m&agent=clerk", token)).toEqual(clerk);
    expect(JSON.stringify(clerk)).not.toContain("scribe");
    expect([clerk.agent, clerk.totals.tasks.succeeded, scribe.totals.tasks.succeeded]).toEqual([
      "clerk",
      6,
      4,
    ]);
    const total = all.credits.total.map(micros);
    const both = clerk.credits.total.map((credits: number, index: number) => {
      return micros(credits) + micros(scribe.credits.total[index]);
    });
    expect(both).toEqual(total);
  });

  test("another workspace sees nothing of it", async () => {
    const other = await stage.gateway.workspace("other");
    const seen = await usage("?step=1d", other);
    expect([seen.totals.credits, seen.totals.tasks.succeeded, seen.totals.models.calls]).toEqual([0, 0, 0]);
    expect(seen.credits.by_agent).toEqual({ top: [], other: null });
    const agent = await stage.gateway.call("GET", "/v1/usage?agent=clerk", { token: other });
    expect(agent.status).toBe(404);
  });

  test("an archived agent's use stays under its name", async () => {
    const before = await usage("?step=5m&agent=scribe");
    expect((await stage.gateway.call("DELETE", "/v1/agents/scribe")).status).toBe(204);
    expect(await usage("?step=5m&agent=scribe")).toEqual(before);
    expect((await usage()).credits.by_agent.top[0].name).toBe("scribe");
  });

  test("a client's calls outside tasks are counted, at once if they cost something", async () => {
    const before = (await usage()).totals;
    const client = await connect(stage.gateway, { token: await stage.gateway.token({ scopes: ["admin"] }) });
    expect((await client.call("time__now")).isError).toBeUndefined();
    const paid = await usage();
    expect(paid.totals.tools.calls).toBe(before.tools.calls + 1);
    expect(micros(paid.totals.credits)).toBe(micros(before.credits) + 7);
    expect(paid.credits.by_agent.top.at(-1)).toMatchObject({ name: null, credits: 0.000007 });
    const documents = { query: "anything" };
    expect((await client.call("vault__search", documents)).isError).toBeUndefined();
    expect((await client.call("vault__search", { query: 7 })).isError).toBe(true);
    clock.advance(HOUSEKEEPING);
    await until(async () => (await usage()).totals.tools.calls === before.tools.calls + 3);
    expect((await usage()).totals.tools.denied).toBe(before.tools.denied + 1);
  });

  test("a client's refused calls are counted as denied, but not under a name that the client invented", async () => {
    const { call, token } = stage.gateway;
    const denied = async () => {
      const entries = await ledger(stage.gateway);
      return entries.filter(({ action, phase }) => action === "tool.call" && phase === "single").length;
    };
    const before = (await usage()).totals.tools;
    const recorded = await denied();
    const none = await token({ scopes: ["tasks:read"] });
    const clerk = await token({ agent: "clerk", scopes: ["tools:vault.*"] });
    const ask = async (name: string, secret: string) =>
      (await call("POST", `/v1/tools/${name}/call`, { token: secret, body: {} })).body.code;
    expect(await ask("made.up_by_client", stage.gateway.admin)).toBe("unknown_tool");
    expect(await ask("time.now", none)).toBe("tool_forbidden");
    expect(await ask("time.now", clerk)).toBe("tool_forbidden");
    const client = await connect(stage.gateway, { token: none });
    expect(
      await client.call("time__now").then(
        () => "called",
        () => "refused",
      ),
    ).toBe("refused");
    expect(await denied()).toBe(recorded + 4);
    clock.advance(HOUSEKEEPING);
    await until(async () => (await usage()).totals.tools.calls === before.calls + 4);
    expect((await usage()).totals.tools).toEqual({
      ...before,
      calls: before.calls + 4,
      denied: before.denied + 4,
    });
    const file = new Database(databasePath(stage.gateway.dataDir), { readonly: true });
    const rows = file.query("SELECT name FROM usage_counts WHERE outcome = 'denied'").all();
    file.close();
    expect(JSON.stringify(rows)).not.toContain("made");
    expect(rows).toContainEqual({ name: "(unknown)" });
    expect(rows).toContainEqual({ name: "time.now" });
  });

  test("the gateway itself moves counts to slots, without changing them", async () => {
    const before = await usage("?step=1h&to=2026-05-06T01:00:00Z");
    clock.advance(HOUR);
    const open = () => {
      const file = new Database(databasePath(stage.gateway.dataDir), { readonly: true });
      const row = file.query<{ count: number }, []>("SELECT COUNT(*) AS count FROM usage_counts").get();
      file.close();
      return row?.count;
    };
    await until(() => open() === 0);
    expect(await usage("?step=1h&to=2026-05-06T01:00:00Z")).toEqual(before);
  });

  test("reading it adds one entry, which says what was read", async () => {
    const from = "2026-05-05T22:30:00Z";
    await stage.gateway.call("GET", `/v1/usage?from=${from}&agent=clerk`);
    const entries = (await ledger(stage.gateway)).filter(({ action }) => action === "usage.read");
    expect(entries.at(-1)).toMatchObject({
      phase: "single",
      outcome: "succeeded",
      agent: "clerk",
      detail: { step: "1h", from: "2026-05-05T22:00:00.000Z" },
    });
  });
});
