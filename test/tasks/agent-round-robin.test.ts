import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { AgentRoundRobin } from "../../src/tasks/queue/agent-round-robin.ts";

/** `a2` is the second task of the agent `a`. */
const task = (taskId: string) => ({ workspaceId: 1, taskId, agentId: taskId.charCodeAt(0) });

function turnsOf(ids: string): AgentRoundRobin {
  const turns = new AgentRoundRobin();
  for (const id of ids.split(" ")) turns.add(task(id));
  return turns;
}

function takeAll(turns: AgentRoundRobin): string {
  const taken: string[] = [];
  for (let next = turns.take(); next; next = turns.take()) taken.push(next.taskId);
  return taken.join(" ");
}

describe("agents take turns, and each agent's tasks keep their order", () => {
  const cases = [
    { comes: "a1", served: "a1" },
    { comes: "a1 a2 a3 b1 b2 c1", served: "a1 b1 c1 a2 b2 a3" },
    { comes: "a1 b1 a2 b2 a3", served: "a1 b1 a2 b2 a3" },
    { comes: "b1 b2 b3 a1", served: "b1 a1 b2 b3" },
  ];
  for (const { comes, served } of cases) {
    test(`${comes}: ${served}`, () => {
      expect(takeAll(turnsOf(comes))).toBe(served);
    });
  }

  test("a task removed from the middle, the beginning or the end leaves no gap", () => {
    for (const [gone, served] of [
      ["a2", "a1 b1 a3"],
      ["a1", "a2 b1 a3"],
      ["a3", "a1 b1 a2"],
      ["b1", "a1 a2 a3"],
    ] as const) {
      const turns = turnsOf("a1 a2 a3 b1");
      expect(turns.remove("never there")).toBe(false);
      expect(turns.remove(gone)).toBe(true);
      expect(turns.remove(gone)).toBe(false);
      expect([turns.has(gone), turns.size]).toEqual([false, 3]);
      expect(takeAll(turns)).toBe(served);
    }
  });

  test("an agent that has had its turn goes behind a newly arrived one", () => {
    const turns = turnsOf("a1 a2 b1 b2");
    expect(turns.take()?.taskId).toBe("a1");
    turns.add(task("c1"));
    expect(takeAll(turns)).toBe("b1 a2 c1 b2");
  });

  test("a task that is already waiting keeps its place, and is served once", () => {
    const turns = turnsOf("a1 b1 a2 a1");
    expect(turns.size).toBe(3);
    expect(takeAll(turns)).toBe("a1 b1 a2");
  });
});

test("order is kept, no agent is skipped twice, and nothing is lost or served twice, whatever arrives and leaves", () => {
  const step = fc.record({
    kind: fc.constantFrom("add", "add", "add", "take", "take", "remove"),
    agent: fc.constantFrom("a", "b", "c", "d"),
    pick: fc.nat(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
      const turns = new AgentRoundRobin();
      // The oracle: each agent's tasks, and, for each waiting agent, the agents that were served after it.
      const lines = new Map<string, string[]>();
      const servedSince = new Map<string, Set<string>>();
      const taken = new Set<string>();
      const waiting = () => [...lines.values()].flat();
      const drop = (id: string) => {
        const agent = id.charAt(0);
        const rest = (lines.get(agent) ?? []).filter((other) => other !== id);
        if (rest.length > 0) lines.set(agent, rest);
        else {
          lines.delete(agent);
          servedSince.delete(agent);
        }
      };
      const take = () => {
        const next = turns.take();
        if (!next) return expect(waiting()).toEqual([]);
        const agent = next.taskId.charAt(0);
        expect(lines.get(agent)?.[0]).toBe(next.taskId);
        expect(taken.has(next.taskId)).toBe(false);
        taken.add(next.taskId);
        for (const [other, served] of servedSince) {
          if (other === agent) continue;
          expect(served.has(agent)).toBe(false);
          served.add(agent);
        }
        servedSince.set(agent, new Set());
        drop(next.taskId);
      };
      for (const [index, { kind, agent, pick }] of steps.entries()) {
        if (kind === "add") {
          const id = `${agent}${index}`;
          turns.add(task(id));
          lines.set(agent, [...(lines.get(agent) ?? []), id]);
          if (!servedSince.has(agent)) servedSince.set(agent, new Set());
        } else if (kind === "take") take();
        else {
          const all = waiting();
          const id = all[pick % all.length];
          expect(turns.remove(id ?? "nobody")).toBe(id !== undefined);
          if (id !== undefined) drop(id);
        }
        const all = waiting();
        expect(turns.size).toBe(all.length);
        expect(turns.all().map(({ taskId }) => taskId)).toEqual(all.toSorted(byArrival));
        for (const name of ["a", "b", "c", "d"]) {
          expect(turns.of(name.charCodeAt(0)).map(({ taskId }) => taskId)).toEqual(lines.get(name) ?? []);
        }
      }
      while (turns.size > 0) take();
      take();
    }),
    { numRuns: 500 },
  );
});

function byArrival(one: string, other: string): number {
  return Number(one.slice(1)) - Number(other.slice(1));
}
