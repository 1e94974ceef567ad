import { expect, test } from "bun:test";
import { checkPlan, planConnections } from "../../../src/http/connections/plan.ts";

test("a limit that is too low is refused, with advice on what to do", () => {
  const plan = planConnections(127);
  expect(() => plan && checkPlan(plan)).toThrow("the limit on open files is 127, too low for a server");
});

test.each([128, 256, 1_024, 4_096, 20_000, 1_048_576])(
  "of %i descriptors, some are always kept for the program",
  (limit) => {
    const plan = planConnections(limit);
    if (!plan) throw new Error("there is a limit");
    checkPlan(plan);
    expect(plan.openFiles - plan.connections).toBeGreaterThanOrEqual(Math.min(48, limit));
    expect(plan.reserve).toBeLessThan((plan.openFiles - plan.connections) / 2);
    expect(plan.streams).toBeLessThan(plan.connections);
    expect(plan.streamsPerWorkspace).toBeLessThan(plan.streams);
  },
);

test("without a limit there is no plan", () => {
  expect(planConnections(null)).toBeNull();
});
