/** Killed at any moment, again and again: what was acknowledged is there, ends once, and the evidence says the truth. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { CHECKS } from "../../scripts/soaking/checks/all.ts";
import { type Evidence, soak, type TaskView } from "../../scripts/soaking/soak.ts";

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

const startsOf = ({ id }: TaskView) =>
  evidence.events.get(id)?.filter(({ event }) => event === "task.started").length ?? 0;

const startedAgain = () => [...evidence.tasks.values()].filter((task) => startsOf(task) > 1);

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

/** Otherwise the kills came too late to mean anything, or too early to let anything happen. */
describe("the kills came in the middle of", () => {
  test("tasks, which were started again and succeeded", () => {
    expect(startedAgain().some(({ status }) => status === "succeeded")).toBe(true);
  });

  test("tasks that had called a tool, which went on from there", () => {
    const wentOn = startedAgain().filter(({ tools_called }) => tools_called.length > 0);
    expect(wentOn.some(({ status }) => status === "succeeded")).toBe(true);
  });

  test("calls of tools, of which nobody knows whether they were made", () => {
    const calls = [...evidence.tasks.values()].flatMap(({ tools_called }) => tools_called);
    expect(calls.some(({ status }) => status === "unknown")).toBe(true);
    expect(calls.some(({ status }) => status === "succeeded")).toBe(true);
  });

  test("streams, whose readers came back", () => {
    const readers = evidence.world.asked.flatMap(({ reader }) => (reader ? [reader] : []));
    expect(readers.some(({ resumed, finished }) => resumed > 0 && finished === 1)).toBe(true);
  });

  test("what people had to decide", () => {
    expect([...evidence.world.decided.values()].some(({ isAcknowledged }) => isAcknowledged)).toBe(true);
  });
});
