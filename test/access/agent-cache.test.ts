/** The memory for cached agents is bounded, whatever their instructions and lists are. */
import { expect, test } from "bun:test";
import { AgentCache } from "../../src/access/agent-cache.ts";
import type { Agent } from "../../src/access/agents.ts";
import { OPEN_POLICY } from "../../src/access/tier-policy.ts";

const agent = (name: string, fields: Partial<Agent>) => ({
  agent: {
    name,
    owner: "",
    description: null,
    instructions: null,
    memoryScope: ["/"],
    tools: ["*"],
    approvals: null,
    tierPolicy: OPEN_POLICY,
    ...fields,
  } as Agent,
  generation: 1,
});

test("agents with long instructions take a bounded share of memory, and short ones stay", () => {
  const cache = new AgentCache(1_000_000);
  const add = (name: string, length: number) =>
    cache.add([name], agent(name, { instructions: "i".repeat(length) }));
  const kept = () => ["a", "b", "c", "d"].filter((name) => cache.get(name) !== undefined);
  add("a", 200_000);
  add("b", 290_000);
  expect(kept()).toEqual(["a", "b"]);
  add("c", 10_000);
  expect(kept()).toEqual(["c"]);
  add("d", 470_000);
  expect(kept()).toEqual(["c", "d"]);
});

const long = Array.from({ length: 200 }, (_, index) => String(index).padEnd(200, "x"));
const lists: readonly [string, Partial<Agent>][] = [
  ["tools", { tools: long }],
  ["approvals", { approvals: long }],
  ["memory scopes", { memoryScope: long }],
  ["allowed models", { tierPolicy: { tiers: null, models: { allow: long, deny: [] } } }],
  ["denied models", { tierPolicy: { tiers: null, models: { allow: [], deny: long } } }],
];

test.each(lists)("agents with long lists of %s take a bounded share of memory", (_, fields) => {
  const cache = new AgentCache();
  let most = 0;
  for (let index = 0, kept = 0; index < 2_000; index++) {
    cache.add([`name${index}`, `id${index}`], agent(`a${index}`, fields));
    kept = index > 0 && cache.get(`id${index - 1}`) === undefined ? 1 : kept + 1;
    most = Math.max(most, kept);
  }
  expect(most).toBeGreaterThan(500);
  expect(most).toBeLessThan(800);
});

test("an agent that is read again takes no more memory, and an agent with its name replaces it", () => {
  const cache = new AgentCache(1_000_000);
  cache.add(["name:other", "id:0"], agent("other", {}));
  for (let id = 1; id < 100; id++) {
    for (let reads = 0; reads < 3; reads++) {
      cache.add(["name:a", `id:${id}`], agent("a", { instructions: "i".repeat(200_000) }));
    }
    expect(cache.get(`id:${id - 1}`) === undefined).toBe(id > 1);
  }
  expect(cache.get("name:other")).toBeDefined();
});
