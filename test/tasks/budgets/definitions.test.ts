/** A budget's reservation for a call covers everything that is sent, including the definitions of its tools. */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { ended, ledger, run, type Stage, startStage, unsettled } from "../support.ts";
import { reservations, spent } from "./support.ts";

setDefaultTimeout(120_000);

const TOOLS = 100;
const TASKS = 40;
const BUDGET = 12;
const BYTES_PER_TOKEN = 4;

let stage: Stage;
beforeEach(async () => {
  stage = await startStage({ tiers: { 1: ["paid"] }, prices: { paid: [0.5, 0.5] } });
  const created = await stage.gateway.call("POST", "/v1/connectors", {
    body: { name: "large", kind: "openapi", base_url: "https://api.example.org", spec: largeDocument() },
  });
  expect([created.status, created.body.tools.length]).toEqual([201, TOOLS]);
  // Counts as an honest provider does, including the definitions of tools.
  stage.upstream.script("paid", ({ body }) => ({
    chunks: ["ok"],
    usage: { prompt_tokens: Math.ceil(JSON.stringify(body).length / BYTES_PER_TOKEN), completion_tokens: 1 },
  }));
});
afterEach(() => stage.stop());

const tools = Array.from({ length: TOOLS }, (_, index) => `large.tool_${index}`);

function largeDocument(): object {
  const paths = tools.map((_, index) => {
    const operation = {
      operationId: `tool_${index}`,
      description: `${index} ${"what this tool does and when to call it ".repeat(20)}`,
      parameters: [{ name: "query", in: "query", schema: { type: "string", description: "q".repeat(100) } }],
      responses: { 200: { description: "fine" } },
    };
    return [`/${index}`, { get: operation }] as const;
  });
  return { openapi: "3.0.3", info: { title: "t", version: "1" }, paths: Object.fromEntries(paths) };
}

const BUDGETS = [
  ["an agent's day", { credits_per_day: BUDGET }, null],
  ["a workspace's month", null, BUDGET],
] as const;

test.each(BUDGETS)(
  "40 tasks at once with 100 large tools overspend %s by at most one call",
  async (_name, budget, month) => {
    await stage.gateway.agent("busy", budget === null ? {} : { budget });
    if (month !== null) {
      await stage.gateway.call("PATCH", "/v1/workspace", { body: { budget: { credits_per_month: month } } });
    }
    const answers = await Promise.all(
      Array.from({ length: TASKS }, () =>
        stage.gateway.call("POST", "/v1/tasks", { body: { agent: "busy", prompt: "hi", tools } }),
      ),
    );
    // The first tasks may have spent the budget before the last ones are accepted.
    for (const { status, body } of answers) expect(body.code ?? status).toBeOneOf([202, "credits_exhausted"]);
    const ids = answers.flatMap(({ status, body }) => (status === 202 ? [body.id] : []));
    const tasks = await Promise.all(ids.map((id) => ended(stage.gateway, id)));
    const most = Math.max(...tasks.map((task) => task.credits_consumed));
    // At least a tenth of the budget; otherwise this would test nothing.
    expect(most).toBeGreaterThan(BUDGET / 10);
    expect(await spent(stage.gateway)).toBeLessThanOrEqual((BUDGET + most) * 1e6);
    for (const task of tasks)
      expect(task.error?.code ?? task.status).toMatch(/^(succeeded|credits_exhausted)$/);
    // No task is refused before the budget is spent.
    expect(await spent(stage.gateway)).toBeGreaterThanOrEqual(BUDGET * 1e6);
    expect(await reservations(stage.gateway)).toBe(0);
    expect(unsettled(await ledger(stage.gateway))).toEqual([]);
  },
);

test("a call's reservation is at least its charge, from the first call on", async () => {
  await stage.gateway.agent("budgeted", { budget: { credits_per_day: 1_000 } });
  for (const listed of [tools, tools.slice(0, 10), [], tools.slice(50), tools]) {
    const task = await run(stage.gateway, { agent: "budgeted", tools: listed, prompt: "p".repeat(5_000) });
    const calls = (await ledger(stage.gateway)).filter((entry) => entry.task === task.id);
    const reserved = calls.find(({ action, phase }) => action === "model.call" && phase === "intent");
    const charged = calls.find(({ action, phase }) => action === "model.call" && phase === "outcome");
    expect(Number(reserved?.detail?.reserved)).toBeGreaterThanOrEqual(charged?.credits ?? Number.NaN);
  }
});
