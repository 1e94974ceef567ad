/** How much memory connectors' tools may take: per connector, per workspace and in total. */
import { describe, expect, test } from "bun:test";
import { ArgumentChecks } from "../../src/connectors/arguments/checks.ts";
import { areSameTools, bytesOfTools, expandTool, keepTool } from "../../src/connectors/tools/kept-tool.ts";
import { ToolMemory } from "../../src/connectors/tools/memory-share.ts";

const MIB = 1024 * 1024;
/** Tools of slightly more than one MiB each. */
const tools = (count: number, each = MIB) =>
  Array.from({ length: count }, (_, index) =>
    keepTool({
      name: `t${index}`,
      description: "x".repeat(each),
      inputSchema: { type: "object" },
      destructive: false,
    }),
  );
const room = () =>
  new ToolMemory({
    connector: { tools: 4, bytes: 4 * MIB },
    workspace: { tools: 6, bytes: 6 * MIB },
    node: { tools: 9, bytes: 9 * MIB },
  });

describe("tools are refused, and earlier ones stay,", () => {
  test("for one connector with too many, or with too many bytes", () => {
    const held = room();
    expect(held.hold(1, 1, tools(5, 1))).toContain("one connector may have 4 tools (4.0 MiB)");
    expect(held.hold(1, 1, tools(4))).toContain("one connector may have");
    expect(held.hold(1, 1, tools(3))).toBeUndefined();
  });

  test("for a workspace whose other connectors have used up its room; another workspace has its own", () => {
    const held = room();
    expect(held.hold(1, 1, tools(3))).toBeUndefined();
    expect(held.hold(1, 2, tools(3))).toContain("The workspace's other connectors have 3 tools (3.0 MiB)");
    expect(held.refusal(1, null, tools(3))).toBeDefined();
    expect(held.hold(2, 3, tools(3))).toBeUndefined();
  });

  test("for the node, whoever uses its room", () => {
    const held = room();
    for (const workspace of [1, 2]) expect(held.hold(workspace, workspace, tools(3))).toBeUndefined();
    expect(held.hold(3, 3, tools(3))).toContain("this server has no room");
    held.release(1);
    expect(held.hold(3, 3, tools(3))).toBeUndefined();
  });
});

test("a smaller list is always accepted, and frees room", () => {
  const held = room();
  expect(held.hold(1, 1, tools(3))).toBeUndefined();
  expect(held.hold(1, 2, tools(2))).toBeUndefined();
  expect(held.hold(1, 1, tools(1))).toBeUndefined();
  expect(held.hold(1, 3, tools(2))).toBeUndefined();
  // Releasing one twice, or one that has no tools, changes nothing.
  for (const id of [3, 3, 9]) held.release(id);
  expect(held.hold(1, 3, tools(3))).toContain("The workspace's other connectors have 3 tools");
});

test("a kept tool is the offered one as text; one wide character counts for its whole text", () => {
  const offered = {
    name: "a",
    title: "A",
    description: "ä",
    inputSchema: { type: "object", properties: { a: { enum: ["\ud800", 1e21, "é\u0000"] } } },
    outputSchema: { type: "object" },
    annotations: { readOnlyHint: true },
    destructive: false,
    path: ["gw_1"],
    binding: { name: "upstream's" },
  };
  const kept = keepTool(offered);
  expect(expandTool(kept)).toEqual(offered);
  expect(Object.values(kept).filter((value) => typeof value === "object")).toEqual([
    { readOnlyHint: true },
    ["gw_1"],
  ]);
  expect(areSameTools([kept], [keepTool(offered)])).toBe(true);
  expect(areSameTools([kept], [keepTool({ ...offered, outputSchema: { type: "object", a: 1 } })])).toBe(
    false,
  );
  const [plain, wide] = ["a", "→"].map((text) =>
    bytesOfTools([{ ...kept, description: text.repeat(1_000) }]),
  );
  expect(Number(wide) - Number(plain)).toBe(1_000);
});

test("compiled schemas are kept up to a limit, the most recently used ones", () => {
  const checks = new ArgumentChecks(100_000);
  const called = Array.from({ length: 200 }, (_, index) =>
    keepTool({
      name: `t${index}`,
      description: "",
      inputSchema: { type: "object", required: [`a${index}`] },
      destructive: false,
    }),
  );
  for (const tool of called) expect(checks.errors(tool, {})).toHaveLength(1);
  expect(checks.size).toBeGreaterThan(5);
  expect(checks.size).toBeLessThan(25);
  for (const [index, tool] of called.entries()) expect(checks.errors(tool, { [`a${index}`]: 1 })).toEqual([]);
});
