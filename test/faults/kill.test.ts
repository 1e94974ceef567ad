/** Killed at any moment, again and again: what was acknowledged is there, ends once, and the evidence says the truth. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { CHECKS } from "../../scripts/soaking/checks/all.ts";
import { type Evidence, soak } from "../../scripts/soaking/soak.ts";

setDefaultTimeout(180_000);

/** `scripts/soak` does the same with many more. */
const KILLS = 10;
const TASKS_A_ROUND = 10;

let evidence: Evidence;

beforeAll(async () => {
  evidence = await soak({
    kills: KILLS,
    seed: 20_261_121,
    binary: false,
    tasksARound: TASKS_A_ROUND,
    until: Number.POSITIVE_INFINITY,
    progress: () => {},
  });
}, 180_000);

afterAll(() => evidence?.server.remove());

describe("after every crash", () => {
  test("the ledger verifies", () => {
    expect(evidence.kills).toBe(KILLS);
    expect(evidence.world.faults.of("ledger")).toEqual([]);
  });

  test("the server starts, and answers what it is asked until the next one", () => {
    const { faults } = evidence.world;
    expect([...faults.of("answers"), ...faults.of("tasks"), ...faults.of("decisions")]).toEqual([]);
    expect(faults.of("end")).toEqual([]);
  });
});

describe("in the end", () => {
  test.each(Object.entries(CHECKS))("%s", (_, faultsIn) => {
    expect([...faultsIn(evidence)]).toEqual([]);
  });

  test("each idempotency key has one task", () => {
    const { world, file } = evidence;
    expect(world.asked.length).toBeGreaterThan(TASKS_A_ROUND);
    const own = file.keys.filter(({ key }) => key.startsWith("task-"));
    expect(own.length).toBe(world.asked.length);
  });
});
