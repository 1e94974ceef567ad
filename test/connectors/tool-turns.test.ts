/** Decisions about thousands of tools share the event loop, and are made once for the same lists. */
import { expect, test } from "bun:test";
import { Catalogue } from "../../src/connectors/catalogue.ts";
import { ToolRegistry } from "../../src/connectors/registry.ts";
import { ToolRule } from "../../src/connectors/tool-rule.ts";
import { type KeptTool, keepTool } from "../../src/connectors/tools/kept-tool.ts";
import { origin } from "./bench.ts";

const TOOLS = 2_000;
const call = async () => ({ content: [] });
const offered: readonly KeptTool[] = Array.from({ length: TOOLS }, (_, index) =>
  keepTool({
    name: `${"a".repeat(60)}${index}`,
    description: "",
    inputSchema: { type: "object" },
    destructive: false,
  }),
);
/** Globs that match none of these tools, but have to be searched to the end. */
const hostile = (end: string) =>
  Array.from({ length: 199 }, (_, index) => `*?${"a?".repeat(20)}${end}${index}*`);

/** The result, and how many turns of the event loop began before it was there. */
async function counted<Result>(work: () => Promise<Result>) {
  const counter = { turns: 0, isDone: false };
  const count = () => {
    if (counter.isDone) return;
    counter.turns += 1;
    setImmediate(count);
  };
  setImmediate(count);
  const result = await work();
  counter.isDone = true;
  return { result, turns: counter.turns };
}

function registryOf(): { readonly catalogue: Catalogue; readonly registry: ToolRegistry } {
  const catalogue = new Catalogue([]);
  catalogue.put(1, origin("up"), ["*"], offered, call);
  return { catalogue, registry: new ToolRegistry(catalogue) };
}

test("other work runs while an agent's hundreds of globs are compared with thousands of tools", async () => {
  const { registry } = registryOf();
  const user = { tools: [...hostile("x"), "up.*7"], scopes: hostile("y").map((glob) => `tools:${glob}`) };
  const first = await counted(async () =>
    registry.reachable(1, { ...user, scopes: [...user.scopes, "tools:*8", "tools:*77"] }),
  );
  expect(first.result).toHaveLength(TOOLS / 100);
  expect(first.turns).toBeGreaterThan(20);
});

test("the same lists are decided once, until the connectors change", async () => {
  const { catalogue, registry } = registryOf();
  const user = { tools: hostile("x"), scopes: ["tools:*"] };
  const first = await counted(async () => registry.reachable(1, user));
  expect(first.turns).toBeGreaterThan(20);
  const again = await counted(async () => registry.reachable(1, user));
  expect([again.result, again.turns]).toEqual([[], 0]);
  catalogue.put(1, origin("other"), ["*"], offered.slice(0, 1), call);
  const changed = await counted(async () => registry.reachable(1, { ...user, tools: ["other.*"] }));
  expect(changed.result).toHaveLength(1);
});

test("requests that arrive together share one decision", async () => {
  const tested: string[] = [];
  const rule = new ToolRule({
    test(_, name) {
      tested.push(name);
      return name.endsWith("0");
    },
    cost: () => 64 * 1024,
  });
  const patterns = ["*0"];
  const all = await Promise.all([1, 2, 3].map(() => rule.of(1, offered, patterns)));
  expect(tested).toHaveLength(TOOLS);
  for (const subset of all) {
    expect(offered.filter((_, index) => subset.has(index))).toHaveLength(TOOLS / 10);
  }
  expect(rule.known(offered, patterns)).toBe(all[0]);
  expect(rule.known(offered, ["*0"])).toBeUndefined();
});

test("decisions take a bounded share of memory, and those in use stay", async () => {
  const rule = new ToolRule({ test: () => true, cost: () => 1 });
  const all = Array.from({ length: 5_000 }, () => ["*"]);
  const [used = []] = all;
  const first = await rule.of(1, offered, used);
  for (const patterns of all) {
    await rule.of(1, offered.slice(0, 1), patterns);
    await rule.of(1, offered, patterns);
    expect(rule.known(offered, used)).toBe(first);
  }
  const kept = all.filter((patterns) => rule.known(offered, patterns) !== undefined).length;
  expect(kept).toBeGreaterThan(500);
  expect(kept).toBeLessThan(4_000);
});

test("a connector's own scopes are compared with its tools in turns", async () => {
  const { catalogue } = registryOf();
  const scopes = [...hostile("x"), "*9"];
  const { turns } = await counted(() => catalogue.authorise(1, scopes, offered));
  expect(turns).toBeGreaterThan(20);
  catalogue.put(1, origin("up"), scopes, offered, call);
  expect(catalogue.toolsOf(1, "up")).toHaveLength(TOOLS / 10);
  expect(catalogue.toolsOf(1, "up")).toBe(catalogue.toolsOf(1, "up"));
});
