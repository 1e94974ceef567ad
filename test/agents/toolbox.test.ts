import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import Type from "typebox";
import { defineTool } from "../../src/agents/index.ts";
import { createToolbox } from "../../src/agents/tools/toolbox.ts";

function named(name: string) {
  return defineTool({ name, description: "", input: Type.Object({}), execute: () => null });
}

describe("names for providers", () => {
  test("have no dots, and names that need no change keep their form", () => {
    const toolbox = createToolbox([named("a.b"), named("a__b"), named("a.b_2"), named("c")]);
    expect(["a.b", "a__b", "a.b_2", "c", "gone.tool"].map(toolbox.toProvider)).toEqual([
      "a__b_2",
      "a__b",
      "a__b_2_2",
      "c",
      "gone__tool",
    ]);
  });

  test("are distinct, acceptable and reversible, whatever the tools are called", () => {
    const name = fc.stringMatching(/^[ab_.]{1,6}$|^[a.]{60,70}$/);
    fc.assert(
      fc.property(fc.uniqueArray(name, { maxLength: 12 }), (names) => {
        const toolbox = createToolbox(names.map(named));
        const shown = names.map(toolbox.toProvider);
        expect(new Set(shown).size).toBe(names.length);
        expect(shown.map(toolbox.fromProvider)).toEqual(names);
        for (const given of shown) expect(given).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
      }),
    );
  });

  test.each(["", "a b", "ä", "x".repeat(129)])("%p is no name", (name) => {
    expect(() => named(name)).toThrow(TypeError);
  });
});

describe("a tool with a plain JSON schema", () => {
  const base = { name: "t", description: "", execute: () => null };
  const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };

  test("is checked against it", () => {
    const tool = defineTool({ ...base, inputSchema: schema });
    expect(tool.validate({ n: 1 })).toEqual([]);
    expect(tool.validate({ n: "x" })).toEqual([{ path: "/n", message: "must be integer" }]);
    expect(tool.inputSchema).toBe(schema);
  });

  test("may have its own check", () => {
    const tool = defineTool({
      ...base,
      inputSchema: schema,
      validate: () => [{ path: "/n", message: "no" }],
    });
    expect(tool.validate({ n: 1 })).toHaveLength(1);
  });

  test("keeps its flags", () => {
    expect(defineTool({ ...base, inputSchema: schema, destructive: true })).toMatchObject({
      destructive: true,
    });
    expect("idempotent" in defineTool({ ...base, inputSchema: schema })).toBe(false);
  });
});
