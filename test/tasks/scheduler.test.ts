import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Workspace } from "../../src/access/workspaces.ts";
import { Problem } from "../../src/base/errors.ts";
import { type QueuedTask, Scheduler } from "../../src/tasks/queue/scheduler.ts";

interface Rules {
  readonly nodeCeiling?: number;
  readonly queueLimit?: number;
  readonly concurrentTasks?: number;
  readonly enforcement?: "soft" | "enforced";
}

/** A scheduler whose runs end when the test tells them to. */
function bench(rules: Rules = {}) {
  const { nodeCeiling = 1_000, queueLimit = 1_000 } = rules;
  let { concurrentTasks = 60, enforcement = "enforced" } = rules;
  const started: string[] = [];
  const ends = new Map<string, () => void>();
  let over = 0;
  const scheduler = new Scheduler({
    nodeCeiling,
    queueLimit,
    workspace: (id): Workspace => ({
      id,
      name: `w${id}`,
      status: "active",
      limits: { requestsPerMinute: 600, concurrentTasks, enforcement },
      creditsPerMonth: null,
      createdAt: 0,
    }),
    overLimit: () => {
      over++;
    },
    run({ taskId }) {
      started.push(taskId);
      const { promise, resolve } = Promise.withResolvers<void>();
      ends.set(taskId, resolve);
      return promise;
    },
  });
  return {
    scheduler,
    started,
    running: () => [...ends.keys()],
    over: () => over,
    limit(next: Rules) {
      concurrentTasks = next.concurrentTasks ?? concurrentTasks;
      enforcement = next.enforcement ?? enforcement;
      scheduler.pump();
    },
    async end(taskId: string) {
      const resolve = ends.get(taskId);
      ends.delete(taskId);
      const done = scheduler.ended(taskId);
      resolve?.();
      await done;
      await Promise.resolve();
    },
  };
}

const task = (workspaceId: number, taskId: string, agentId = 1): QueuedTask => ({
  workspaceId,
  taskId,
  agentId,
});

describe("the queue of a workspace", () => {
  test("is full at its limit, including reserved places, which are returned only once", () => {
    const { scheduler } = bench({ queueLimit: 2, concurrentTasks: 1 });
    scheduler.enqueue(task(1, "running"));
    scheduler.enqueue(task(1, "waiting"));
    const place = scheduler.reserve(1);
    let refused: unknown;
    try {
      scheduler.reserve(1);
    } catch (error) {
      refused = error;
    }
    expect(refused).toBeInstanceOf(Problem);
    expect(refused).toMatchObject({ code: "queue_full", status: 429, headers: { "Retry-After": "5" } });
    scheduler.reserve(2).release();
    place.release();
    place.release();
    scheduler.reserve(1);
    expect(() => scheduler.reserve(1)).toThrow(Problem);
  });

  test("is served first come, first served", async () => {
    const { scheduler, started, end } = bench({ concurrentTasks: 2 });
    for (const id of ["1", "2", "3", "4", "5"]) scheduler.enqueue(task(1, id));
    expect(started).toEqual(["1", "2"]);
    await end("2");
    await end("1");
    expect(scheduler.remove(1, "5")).toBe(true);
    expect(scheduler.remove(1, "5")).toBe(false);
    await end("3");
    expect(started).toEqual(["1", "2", "3", "4"]);
  });
});

test("beyond the limit, soft runs tasks and reports each, and enforced makes them wait", () => {
  const soft = bench({ concurrentTasks: 2, enforcement: "soft" });
  for (const id of ["1", "2", "3", "4"]) soft.scheduler.enqueue(task(1, id));
  expect([soft.started.length, soft.over()]).toEqual([4, 2]);
  const enforced = bench({ concurrentTasks: 2 });
  for (const id of ["1", "2", "3", "4"]) enforced.scheduler.enqueue(task(1, id));
  expect([enforced.started.length, enforced.over()]).toEqual([2, 0]);
});

test("the node's ceiling applies to soft workspaces too", async () => {
  const { scheduler, started, end, over } = bench({
    nodeCeiling: 3,
    concurrentTasks: 2,
    enforcement: "soft",
  });
  for (const id of ["1", "2", "3", "4", "5"]) scheduler.enqueue(task(1, id));
  expect([started, over()]).toEqual([["1", "2", "3"], 1]);
  await end("1");
  expect(started.at(-1)).toBe("4");
});

test("a changed limit takes effect at once, up and down", async () => {
  const { scheduler, started, end, limit } = bench({ concurrentTasks: 1 });
  for (const id of ["1", "2", "3", "4", "5"]) scheduler.enqueue(task(1, id));
  limit({ concurrentTasks: 3 });
  expect(started.length).toBe(3);
  limit({ concurrentTasks: 1 });
  await end("1");
  await end("2");
  expect(started.length).toBe(3);
  await end("3");
  expect(started.length).toBe(4);
  limit({ enforcement: "soft" });
  expect(started.length).toBe(5);
});

test("workspaces take turns when slots become free one at a time", async () => {
  const { scheduler, started, end } = bench({ nodeCeiling: 1 });
  for (const id of ["a1", "a2", "a3", "a4"]) scheduler.enqueue(task(1, id));
  for (const id of ["b1", "b2"]) scheduler.enqueue(task(2, id));
  scheduler.enqueue(task(3, "c1"));
  for (let done = 0; done < 6; done++) await end(started.at(-1) ?? "");
  expect(started).toEqual(["a1", "a2", "b1", "c1", "a3", "b2", "a4"]);
});

test("a workspace that runs all of the node's tasks gets no free slot before those that run none", async () => {
  const { scheduler, started, end, running } = bench({
    nodeCeiling: 4,
    concurrentTasks: 1,
    enforcement: "soft",
  });
  for (let number = 1; number <= 40; number++) scheduler.enqueue(task(1, `a${number}`));
  for (const id of ["b1", "b2"]) scheduler.enqueue(task(2, id));
  for (const id of ["c1", "c2"]) scheduler.enqueue(task(3, id));
  expect(started).toEqual(["a1", "a2", "a3", "a4"]);
  for (const id of ["a1", "a2"]) await end(id);
  expect(started.slice(4)).toEqual(["b1", "c1"]);
  // Workspace A is down to two tasks, and the others have one each.
  for (const id of ["b1", "c1"]) await end(id);
  expect(started.slice(6)).toEqual(["b2", "c2"]);
  // Each workspace has one task, so they take turns.
  await end("a3");
  expect(running()).toEqual(["a4", "b2", "c2", "a5"]);
});

test("agents of a workspace take turns within the workspace's turn", async () => {
  const { scheduler, started, end } = bench({ nodeCeiling: 1 });
  for (const id of ["a1", "a2", "a3"]) scheduler.enqueue(task(1, id, 1));
  for (const id of ["b1", "b2"]) scheduler.enqueue(task(1, id, 2));
  for (const id of ["x1", "x2"]) scheduler.enqueue(task(2, id, 3));
  for (let done = 0; done < 6; done++) await end(started.at(-1) ?? "");
  expect(started).toEqual(["a1", "a2", "x1", "b1", "x2", "a3", "b2"]);
});

test("none of many simultaneous tasks starts before the last one has a place", () => {
  const { scheduler, started } = bench({ concurrentTasks: 3 });
  scheduler.enqueueAll([
    ...["a1", "a2", "a3"].map((id) => task(1, id, 1)),
    ...["b1", "b2"].map((id) => task(1, id, 2)),
  ]);
  expect(started).toEqual(["a1", "b1", "a2"]);
});

test("waiting and running tasks are counted by agent and by workspace", async () => {
  const { scheduler, end } = bench({ concurrentTasks: 2 });
  for (const id of ["a1", "a2", "a3"]) scheduler.enqueue(task(1, id, 1));
  for (const id of ["b1", "b2"]) scheduler.enqueue(task(1, id, 2));
  for (const id of ["x1", "x2", "x3"]) scheduler.enqueue(task(2, id, 3));
  const ids = (tasks: readonly QueuedTask[]) => tasks.map(({ taskId }) => taskId);
  const now = () => ({
    waiting: [1, 2, 9].map((workspace) => ids(scheduler.waitingIn(workspace))),
    running: [1, 2, 9].map((workspace) => ids(scheduler.runningIn(workspace))),
    agents: [1, 2].map((agent) => [
      ids(scheduler.waitingOf(1, agent)),
      ids(scheduler.runningOf(1, agent)),
      ids(scheduler.waitingOf(2, agent)),
    ]),
  });
  expect(now()).toEqual({
    waiting: [["a3", "b1", "b2"], ["x3"], []],
    running: [["a1", "a2"], ["x1", "x2"], []],
    agents: [
      [["a3"], ["a1", "a2"], []],
      [["b1", "b2"], [], []],
    ],
  });
  await end("a1");
  scheduler.remove(1, "b2");
  expect(now()).toMatchObject({ waiting: [["b1"], ["x3"], []], running: [["a2", "a3"], ["x1", "x2"], []] });
});

test("a stopped scheduler keeps waiting and new tasks in their places", async () => {
  const { scheduler, started, end, limit } = bench({ concurrentTasks: 1 });
  for (const id of ["1", "2"]) scheduler.enqueue(task(1, id));
  const stopped = scheduler.stop();
  scheduler.enqueue(task(1, "3"));
  scheduler.enqueue(task(2, "4"));
  limit({ concurrentTasks: 5 });
  expect([started, scheduler.totalRunning, scheduler.totalWaiting]).toEqual([["1"], 1, 3]);
  await end("1");
  expect([started, scheduler.totalRunning, scheduler.totalWaiting]).toEqual([["1"], 0, 3]);
  await stopped;
});

test("a workspace at its own limit does not block another", () => {
  const { scheduler, started } = bench({ concurrentTasks: 1 });
  for (const id of ["a1", "a2"]) scheduler.enqueue(task(1, id));
  scheduler.enqueue(task(2, "b1"));
  expect(started).toEqual(["a1", "b1"]);
});

test("a stopped scheduler starts nothing more and waits for running tasks", async () => {
  const { scheduler, started, end } = bench({ concurrentTasks: 1 });
  for (const id of ["1", "2"]) scheduler.enqueue(task(1, id));
  let stopped = false;
  const stopping = scheduler.stop().then(() => {
    stopped = true;
  });
  await Promise.resolve();
  expect(stopped).toBe(false);
  await end("1");
  await stopping;
  expect([started, scheduler.waiting(1), scheduler.totalRunning]).toEqual([["1"], 1, 0]);
});

test("whatever arrives, limits hold, no task waits while there is room, and no slot is lost", async () => {
  const step = fc.record({
    kind: fc.constantFrom("enqueue", "enqueue", "end", "remove", "reserve", "limit"),
    workspace: fc.integer({ min: 1, max: 3 }),
    pick: fc.nat(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const nodeCeiling = 4;
      const { scheduler, started, running, end, limit } = bench({ nodeCeiling, concurrentTasks: 2 });
      const queued = new Map<string, number>();
      let limitNow = 2;
      for (const [index, { kind, workspace, pick }] of steps.entries()) {
        const busy = running();
        const waiting = [...queued.keys()].filter((id) => !started.includes(id));
        if (kind === "enqueue") {
          queued.set(`t${index}`, workspace);
          scheduler.enqueue(task(workspace, `t${index}`));
        } else if (kind === "end" && busy.length > 0) await end(busy[pick % busy.length] ?? "");
        else if (kind === "remove" && waiting.length > 0) {
          const id = waiting[pick % waiting.length] ?? "";
          expect(scheduler.remove(queued.get(id) ?? 0, id)).toBe(true);
          queued.delete(id);
        } else if (kind === "reserve") scheduler.reserve(workspace).release();
        else if (kind === "limit") {
          limitNow = 1 + (pick % 3);
          limit({ concurrentTasks: limitNow });
        }
        expect(scheduler.totalRunning).toBe(running().length);
        expect(scheduler.totalRunning).toBeLessThanOrEqual(nodeCeiling);
        for (const id of [1, 2, 3]) {
          const mayStart = scheduler.running(id) < limitNow && scheduler.totalRunning < nodeCeiling;
          if (mayStart) expect(scheduler.waiting(id)).toBe(0);
        }
      }
      limit({ concurrentTasks: 2 });
      while (running().length > 0) await end(running()[0] ?? "");
      expect([scheduler.totalRunning, scheduler.totalWaiting]).toEqual([0, 0]);
      expect(started.toSorted()).toEqual([...queued.keys()].toSorted());
      expect(new Set(started).size).toBe(started.length);
    }),
    { numRuns: 200 },
  );
});
