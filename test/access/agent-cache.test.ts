/** The memory for cached agents is bounded, whatever their instructions are. */
import { expect, test } from "bun:test";
import { AgentCache } from "../../src/access/agent-cache.ts";
import type { Agent } from "../../src/access/agents.ts";

test("agents with long instructions take a bounded share of memory, and short ones stay", () => {
  const cache = new AgentCache(1_000);
  const add = (name: string, length: number) =>
    cache.add([name], { agent: { name, instructions: "i".repeat(length) } as Agent, generation: 1 });
  const kept = () => ["a", "b", "c", "d"].filter((name) => cache.get(name) !== undefined);
  add("a", 400);
  add("b", 600);
  expect(kept()).toEqual(["a", "b"]);
  add("c", 1);
  expect(kept()).toEqual(["c"]);
  add("d", 999);
  expect(kept()).toEqual(["c", "d"]);
});
