import { expect } from "bun:test";
import type { TestGateway } from "../../support/gateway.ts";
import { rowsOf } from "../../support/rows.ts";
import { type Entry, gate, ledger, type Stage } from "../support.ts";

/** An answer of this many output tokens, with no other cost. */
export const worth = (tokens: number) => ({
  chunks: ["ok"],
  usage: { prompt_tokens: 0, completion_tokens: tokens },
});

/** Micro-credits of settled calls, according to each place that counts them. The test fails if these disagree. */
export async function spent(gateway: TestGateway): Promise<number> {
  const entries = await ledger(gateway);
  const calls = entries.filter(
    ({ action, phase }) => phase === "outcome" && (action === "model.call" || action === "tool.call"),
  );
  const sum = (of: readonly Entry[]) => of.reduce((all, { credits }) => all + (credits ?? 0), 0);
  const charged = sum(calls);
  const { body } = await gateway.call("GET", "/v1/workspace");
  expect(Math.round(body.usage.credits_this_month * 1e6)).toBe(charged);
  const read = (statement: string) => rowsOf(gateway.dataDir, statement);
  const rows = await read("SELECT credits FROM spending");
  const tasks = await read("SELECT id, credits FROM tasks");
  const used = await read(
    `SELECT credits FROM usage_counts
     UNION ALL SELECT credits FROM usage_slots WHERE agent_id = -1 AND width = 3600000`,
  );
  const total = (of: typeof rows) => of.reduce((all, { credits }) => all + Number(credits), 0);
  expect(total(used)).toBe(charged);
  expect(total(rows)).toBe(charged);
  for (const { id, credits } of tasks) {
    expect([id, sum(calls.filter(({ task }) => task === id))]).toEqual([id, credits]);
  }
  const ends = entries.filter(({ action, phase }) => action === "task.dispatch" && phase === "outcome");
  for (const end of ends)
    expect(end.credits).toBe(Number(tasks.find(({ id }) => id === end.task)?.credits ?? -1));
  return charged;
}

/** How many calls have a reservation now, according to the metrics. */
export async function reservations({ call }: TestGateway): Promise<number> {
  const { body } = await call("GET", "/metrics");
  return Number(/^gatehouse_budget_reservations (\d+)$/m.exec(body)?.[1]);
}

/** Scripts a model whose answers end one at a time, when `next` releases them. */
export function oneByOne({ upstream }: Stage, model: string, behaviour: object) {
  const out: (() => void)[] = [];
  let asked = 0;
  upstream.script(model, () => {
    asked += 1;
    const end = gate();
    out.push(end.open);
    return { ...behaviour, gate: end.opened };
  });
  return {
    /** Calls in flight. */
    out: () => out.length,
    /** All calls so far. */
    asked: () => asked,
    next: () => out.shift()?.(),
  };
}

/** The ledger's entries about spent budgets: the action, the budget, and the amount spent. */
export async function notices(gateway: TestGateway): Promise<unknown[]> {
  const entries = await ledger(gateway);
  return entries
    .filter(({ action }) => action === "budget.warn" || action === "limit.exceeded")
    .map(({ action, detail }) => [action, detail?.budget, detail?.spent]);
}
