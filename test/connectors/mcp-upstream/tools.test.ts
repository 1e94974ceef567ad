import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { offeredNames } from "../../../src/connectors/mcp-upstream/names.ts";
import { keepTool } from "../../../src/connectors/tools/kept-tool.ts";
import { openFake, SECRET, textOf } from "./support.ts";

describe("names", () => {
  const names = (...own: string[]) => Object.fromEntries(offeredNames(own));

  test("that are safe stay, whatever other tools claim them", () => {
    expect(names("a b", "a_b", "a/b")).toEqual({
      a_b: "a_b",
      "a b": expect.stringMatching(/^a_b_[0-9a-f]{8}$/),
      "a/b": expect.stringMatching(/^a_b_[0-9a-f]{8}$/),
    });
  });

  test("are made safe, and cut", () => {
    expect(names("füll", "x".repeat(200))).toEqual({ füll: "f_ll", ["x".repeat(200)]: "x".repeat(100) });
  });

  test("cannot be displaced by a tool name that looks like a digest", () => {
    const [[, taken = ""] = []] = [...offeredNames(["a b", "a/b"])];
    const again = offeredNames(["a b", "a/b", taken]);
    expect(again.get(taken)).toBe(taken);
    expect(new Set(again.values()).size).toBe(3);
  });

  test("are safe, different, and the same in any order", () => {
    const name = fc.oneof(
      fc.string({ unit: "binary", maxLength: 120 }),
      fc.constantFrom("a b", "a_b", "a/b", "", "_"),
    );
    fc.assert(
      fc.property(fc.array(name), (own) => {
        const offered = offeredNames(own);
        expect(offered.size).toBe(new Set(own).size);
        expect(new Set(offered.values()).size).toBe(offered.size);
        for (const each of offered.values()) expect(each).toMatch(/^[a-zA-Z0-9_.-]{1,100}$/);
        expect(offeredNames([...own].reverse())).toEqual(offered);
      }),
    );
  });
});

describe("a list", () => {
  test("contains all pages, in the upstream's order", async () => {
    await using up = openFake("plain");
    const tools = await up.list();
    expect(tools.slice(0, 6).map(({ name }) => name)).toEqual([
      "echo",
      "env",
      "heard",
      "exit",
      "hang",
      "fail",
    ]);
    expect(tools[0]).toEqual({
      name: "echo",
      description: "",
      inputSchema: { type: "object" },
      destructive: false,
      binding: { name: "echo" },
    });
  });

  test("that repeats itself is refused", async () => {
    await using up = openFake("plain", { list: "looping" });
    await expect(up.list()).rejects.toThrow("the same page of tools repeatedly");
  });

  test("that never ends is cut, and logged once", async () => {
    await using up = openFake("plain", { list: "endless" });
    expect(await up.list()).toHaveLength(100);
    expect(await up.list()).toHaveLength(100);
    expect(up.logged.filter(({ level }) => level === "warn")).toMatchObject([
      { fields: { connector: "up", left_out: "every page after the first 100" } },
    ]);
  });

  test("of too many tools is cut", async () => {
    await using up = openFake("plain", { list: "flood" });
    expect(await up.list()).toHaveLength(2_000);
    expect(up.logged).toMatchObject([
      { level: "warn", fields: { left_out: "every tool after the first 2000" } },
    ]);
  });

  test("is empty if the upstream has no tools", async () => {
    await using up = openFake("plain", { list: "refused" });
    expect(await up.list()).toEqual([]);
  });

  test("contains the usable part of a hostile one", async () => {
    await using up = openFake("plain", { list: "hostile" });
    const tools = await up.list();
    expect(tools.map(({ name }) => name)).toEqual([
      "good",
      "long",
      "wipe",
      expect.stringMatching(/^two_words_[0-9a-f]{8}$/),
      expect.stringMatching(/^two_words_[0-9a-f]{8}$/),
      "tells",
    ]);
    expect(tools[0]).toMatchObject({ title: "Good", inputSchema: { properties: { a: {} } } });
    expect(tools[1]).toMatchObject({ inputSchema: { type: "object" }, description: "d".repeat(4_000) });
    expect(tools[2]).toMatchObject({
      destructive: true,
      annotations: { destructiveHint: true, title: "Wipe" },
    });
    expect(Object.keys(tools[2]?.annotations ?? {})).toEqual(["title", "destructiveHint"]);
    expect(tools[3]?.binding).toEqual({ name: "two words" });
    expect(JSON.stringify([tools, up.logged])).not.toContain(SECRET);
  });
});

test("a tool is called by the upstream's own name", async () => {
  await using up = openFake("plain");
  const [echo] = await up.list();
  if (!echo) throw new Error("no tool");
  const context = { signal: new AbortController().signal, callId: "call_1" };
  expect(textOf(await up.source.call(keepTool({ ...echo, name: "other" }), { text: "hi" }, context))).toBe(
    "hi",
  );
});
