import { describe, expect, test } from "bun:test";
import { APICallError } from "@ai-sdk/provider";
import { type AgentOptions, runAgent } from "../../src/agents/index.ts";
import { answers, collect, httpError, last, only, type Script, scripted, types } from "./support.ts";

function busy(headers: Record<string, string>, statusCode = 429): Script {
  return {
    refuse: new APICallError({
      message: "busy",
      url: "https://up.example",
      requestBodyValues: {},
      statusCode,
      responseHeaders: headers,
    }),
  };
}

/** Runs against these answers of one model and records each wait. */
async function runInto(scripts: readonly Script[], options: Partial<AgentOptions> = {}) {
  const model = scripted("a", scripts);
  const waited: number[] = [];
  const wait = async (ms: number) => void waited.push(ms);
  const events = await collect(runAgent({ model, prompt: "?", wait, ...options }));
  return { events, waited, calls: model.calls.length };
}

describe("a model that failed is not asked again", () => {
  const DATE = "Sun, 06 Nov 1994 08:49:37 GMT";
  test.each<[string, Script]>([
    ["without Retry-After", busy({})],
    ["if it asks for more than ten seconds", busy({ "retry-after": "11" })],
    [
      "until a date that is further away",
      busy({ "retry-after": "Sun, 06 Nov 1994 08:49:48 GMT", date: DATE }),
    ],
    ["until a date, without the time of the provider's clock", busy({ "retry-after": DATE })],
    ["if it requests something that is neither", busy({ "retry-after": "soon", date: DATE })],
    ["if it asks for a negative time", busy({ "retry-after": "-1" })],
    ["if the date is not in HTTP's form", busy({ "retry-after": "1.5", date: DATE })],
    ["or if the number is negative", busy({ "retry-after": "-5", date: DATE })],
    ["after a status for which it has no meaning", busy({ "retry-after": "1" }, 500)],
    ["after a fault of the request", busy({ "retry-after": "1" }, 400)],
    ["after an error of another kind", { refuse: Object.assign(httpError(429), { name: "Error" }) }],
  ])("%s", async (_, script) => {
    const { events, waited, calls } = await runInto([script, answers("late")]);
    expect(last(events)).toMatchObject({ type: "agent.failed", code: "model_unavailable" });
    expect([waited, calls]).toEqual([[], 1]);
  });

  test("if another model can be tried", async () => {
    const waited: number[] = [];
    const wait = async (ms: number) => void waited.push(ms);
    const model = [scripted("a", [busy({ "retry-after": "1" })]), scripted("b", [answers("ok")])];
    const events = await collect(runAgent({ model, prompt: "?", wait }));
    expect(last(events)).toMatchObject({ type: "agent.finished", output: "ok" });
    expect(waited).toEqual([]);
  });

  test("if its host has less patience", async () => {
    const model = { id: "a", model: scripted("a", [busy({ "retry-after": "2" })]), patienceMs: 1_999 };
    expect((await runInto([], { model })).waited).toEqual([]);
  });

  test("twice", async () => {
    const { events, waited, calls } = await runInto([busy({ "retry-after": "1" })]);
    expect(last(events)).toMatchObject({ code: "model_unavailable" });
    expect([waited, calls]).toEqual([[1_000], 2]);
  });

  test("if it is forbidden in the meantime", async () => {
    let allowed = true;
    const wait = async () => {
      allowed = false;
    };
    const { events, calls } = await runInto([busy({ "retry-after": "1" }), answers("late")], {
      wait,
      policy: { allowModel: () => allowed },
    });
    expect(last(events)).toMatchObject({ type: "agent.failed", code: "model_unavailable" });
    expect(calls).toBe(1);
  });

  test("if the run is cancelled while waiting, which ends it at once", async () => {
    const controller = new AbortController();
    const model = scripted("a", [busy({ "retry-after": "10" }), answers("late")]);
    const run = runAgent({ model, prompt: "?", signal: controller.signal });
    const ending = collect(run);
    while (model.calls.length === 0) await Bun.sleep(1);
    controller.abort();
    expect(last(await ending)).toMatchObject({ type: "agent.failed", code: "cancelled" });
    expect(model.calls.length).toBe(1);
  });
});

describe("the last model is called again, once, after", () => {
  test.each<[string, Record<string, string>, number]>([
    ["seconds", { "retry-after": "10" }, 10_000],
    ["no time at all", { "retry-after": "0" }, 0],
    [
      "a date, by the provider's own clock",
      { "retry-after": "Sun, 06 Nov 1994 08:49:40 GMT", date: "Sun, 06 Nov 1994 08:49:37 GMT" },
      3_000,
    ],
    [
      "a date that has passed",
      { "retry-after": "Sun, 06 Nov 1994 08:49:30 GMT", date: "Sun, 06 Nov 1994 08:49:37 GMT" },
      0,
    ],
  ])("%s", async (_, headers, ms) => {
    for (const status of [429, 503]) {
      const { events, waited, calls } = await runInto([busy(headers, status), answers("late")]);
      expect(types(events)).toEqual([
        "step.started",
        "model.started",
        "model.started",
        "output.delta",
        "step.finished",
        "agent.finished",
      ]);
      expect([waited, calls]).toEqual([[ms], 2]);
    }
  });

  test("and again in the run's next call: each attempt has its own hooks and number", async () => {
    const attempts: string[] = [];
    const { events } = await runInto([busy({ "retry-after": "1" }), answers("late")], {
      hooks: {
        beforeModelCall: ({ attempt }) => void attempts.push(`before ${attempt}`),
        afterModelCall: ({ attempt, status }) => void attempts.push(`after ${attempt} ${status}`),
      },
    });
    expect(attempts).toEqual(["before 1", "after 1 failed", "before 2", "after 2 succeeded"]);
    expect(only(events, "model.fallback")).toEqual([]);
  });
});
