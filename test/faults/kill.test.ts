/**
 * The server is killed at any moment, again and again. Acknowledged work exists and ends once, and the evidence is
 * true.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { CHECKS } from "../../scripts/soaking/checks/all.ts";
import { type Evidence, soak } from "../../scripts/soaking/soak.ts";

setDefaultTimeout(180_000);

/** `scripts/soak` does the same with many more kills. */
const KILLS = 10;
const TASKS_A_ROUND = 10;

const SEEDS = [20_261_121, 20_261_122, 20_261_123];
const MEETINGS = "the kills hit the situations that they are meant for";

/**
 * Evidence, one item for each seed used. The effect of a few kills depends on chance, so another seed follows if they
 * hit too little.
 */
const all: Evidence[] = [];

beforeAll(async () => {
  for (const seed of SEEDS) {
    const evidence = await soak({
      kills: KILLS,
      seed,
      binary: false,
      tasksARound: TASKS_A_ROUND,
      until: Number.POSITIVE_INFINITY,
      progress: () => {},
    });
    all.push(evidence);
    if ([...CHECKS[MEETINGS](evidence)].length === 0) return;
  }
}, 180_000);

afterAll(() => {
  for (const { server } of all) server.remove();
});

describe("after every crash", () => {
  test("the ledger verifies", () => {
    for (const { kills, world } of all) {
      expect(kills).toBe(KILLS);
      expect(world.faults.of("ledger")).toEqual([]);
    }
  });

  test("the server starts, and answers every call until the next crash", () => {
    for (const { faults } of all.map(({ world }) => world)) {
      expect([...faults.of("answers"), ...faults.of("tasks"), ...faults.of("decisions")]).toEqual([]);
      expect(faults.of("end")).toEqual([]);
    }
  });
});

describe("after all crashes", () => {
  test.each(Object.entries(CHECKS))("%s", (name, faultsIn) => {
    const found = all.map((evidence) => [...faultsIn(evidence)]);
    if (name === MEETINGS) expect(found.at(-1)).toEqual([]);
    else expect(found.flat()).toEqual([]);
  });

  test("each idempotency key has one task", () => {
    for (const { world, file } of all) {
      expect(world.asked.length).toBeGreaterThan(TASKS_A_ROUND);
      const own = file.keys.filter(({ key }) => key.startsWith("task-"));
      expect(own.length).toBe(world.asked.length);
    }
  });
});
