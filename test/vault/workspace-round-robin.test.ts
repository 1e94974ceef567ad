/**
 * Jobs that wait for the vault's workers: workspaces take turns, the queue is bounded, and a caller that leaves loses
 * its turn.
 */
import { describe, expect, test } from "bun:test";
import { JobQueue } from "../../src/reading/job-queue.ts";
import { WorkspaceRoundRobin } from "../../src/reading/workspace-round-robin.ts";

const job = (name: string, workspaceId: number) => ({ name, workspaceId });
const LIMITS = { perWorkspace: 3, total: 5 };

describe("turns", () => {
  test("take turns between workspaces, however many each has; each workspace's own are in order", () => {
    const turns = new WorkspaceRoundRobin<ReturnType<typeof job>>({ perWorkspace: 100, total: 100 });
    for (const name of ["a1", "a2", "a3", "a4"]) turns.add(job(name, 1));
    turns.add(job("b1", 2));
    turns.add(job("c1", 3));
    turns.add(job("c2", 3));
    const order = Array.from({ length: 8 }, () => turns.take()?.name);
    expect(order).toEqual(["a1", "b1", "c1", "a2", "c2", "a3", "a4", undefined]);
  });

  test("skip a workspace at its limit, and come back to it first", () => {
    const turns = new WorkspaceRoundRobin<ReturnType<typeof job>>({ perWorkspace: 100, total: 100 });
    for (const [name, workspace] of [
      ["a1", 1],
      ["a2", 1],
      ["b1", 2],
    ] as const)
      turns.add(job(name, workspace));
    expect(turns.take((workspace) => workspace !== 1)?.name).toBe("b1");
    expect(turns.take((workspace) => workspace !== 1)).toBeUndefined();
    expect([turns.take()?.name, turns.take()?.name, turns.size]).toEqual(["a1", "a2", 0]);
  });

  test("are refused beyond a workspace's own limit, and beyond the limit for all", () => {
    const turns = new WorkspaceRoundRobin<ReturnType<typeof job>>(LIMITS);
    const full = expect.objectContaining({
      code: "queue_full",
      status: 429,
      headers: { "Retry-After": "1" },
    });
    for (const name of ["a1", "a2", "a3"]) turns.add(job(name, 1));
    expect(() => turns.add(job("a4", 1))).toThrow(full);
    turns.add(job("b1", 2));
    turns.add(job("c1", 3));
    expect(() => turns.add(job("d1", 4))).toThrow(full);
    expect(turns.size).toBe(5);
  });

  test("that were not used go to their workspace's next jobs", () => {
    const turns = new WorkspaceRoundRobin<ReturnType<typeof job>>(LIMITS);
    turns.add(job("a1", 1));
    turns.add(job("a2", 1));
    const first = turns.take();
    if (first) turns.putBack(first);
    expect([turns.take()?.name, turns.take()?.name]).toEqual(["a1", "a2"]);
  });
});

describe("a caller that leaves", () => {
  const GAVE_UP = expect.objectContaining({ code: "client_closed", status: 499 });

  test("loses only its own turn", async () => {
    const queue = new JobQueue<string, string>(LIMITS, () => {});
    const caller = new AbortController();
    const left = queue.do("left", { workspaceId: 1, signal: caller.signal });
    const stays = queue.do("stays", { workspaceId: 1 });
    caller.abort();
    expect(await left.catch((error) => error)).toEqual(GAVE_UP);
    const next = queue.take();
    expect([next?.request, queue.size]).toEqual(["stays", 0]);
    next?.resolve("done");
    expect(await stays).toBe("done");
  });

  test("before it waits gets no turn at all", async () => {
    const queue = new JobQueue<string, string>(LIMITS, () => {});
    const asked = queue.do("left", { workspaceId: 1, signal: AbortSignal.abort() });
    expect(await asked.catch((error) => error)).toEqual(GAVE_UP);
    expect(queue.take()).toBeUndefined();
  });

  test("during its job is still answered", async () => {
    const queue = new JobQueue<string, string>(LIMITS, () => {});
    const caller = new AbortController();
    const asked = queue.do("late", { workspaceId: 1, signal: caller.signal });
    const taken = queue.take();
    caller.abort();
    taken?.resolve("done");
    expect(await asked).toBe("done");
  });
});

test("a closed queue refuses waiting and new jobs", async () => {
  const queue = new JobQueue<string, string>(LIMITS, () => {});
  const waiting = queue.do("waits", { workspaceId: 1 });
  queue.close();
  for (const asked of [waiting, queue.do("comes", { workspaceId: 1 })]) {
    expect(String(await asked.catch((error) => error))).toContain("the server is stopping");
  }
});
